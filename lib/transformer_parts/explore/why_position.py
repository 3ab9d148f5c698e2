"""A sentence whose words are reordered before the eyes of attention."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.why_position import EXACT, Reordered, ReorderingView
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number, vector
from transformer_parts.maths import why_position as maths
from transformer_parts.maths.norms import moments

SENTENCES = ("dog bites man", "only I saw her today", "the cat that chased the dog saw the man")
REORDERINGS = MappingProxyType(
    {
        "as written": "none",
        "swap two words": "swap",
        "reverse": "reverse",
        "rotate: the last comes first": "rotate",
        "shuffle": "shuffle",
    }
)
SCHEMES = MappingProxyType(
    {
        "none": "none",
        "sinusoidal, added": "sinusoidal",
        "learned table, added": "learned",
        "T5 bias on the scores": "t5",
        "ALiBi bias on the scores": "alibi",
        "RoPE on query and key": "rope",
    }
)
SHIFT = 100
HAND, RANDOM = "by hand", "random"
# The words of the example by hand and, for longer sentences, further ones.
_HAND_VECTORS = ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (-1, 1), (1, -1))
_DOG = MappingProxyType(
    {"sentence": SENTENCES[0], "reordering": "reverse", "n_layers": 1, "weights": RANDOM, "seed": 0}
)
_SWAP = MappingProxyType(
    {
        "sentence": SENTENCES[1], "reordering": "swap", "first": 0, "second": 1, "scheme": "none", "causal": True,
        "weights": RANDOM, "seed": 0,
    }
)  # fmt: skip


class Reordering(Panel[Reordered]):
    """The words, how they are reordered, and what attention knows of their order."""

    alt = (
        "Above, two heat maps: attention's outputs for a sentence as written and for the same words reordered, a row"
        " for each token. Below, one head's attention weights as squares, filled for the reordered sentence and open"
        " for the one as written with its tokens moved; the difference of the outputs, token by token; and its largest"
        " entry of each token on a logarithmic scale."
    )
    still = "figures/reordering.png"
    presets = MappingProxyType(
        {
            "By hand": {**_DOG, "weights": HAND, "scheme": "none", "causal": False},
            "By hand, masked": {**_DOG, "weights": HAND, "scheme": "none", "causal": True},
            "Dog bites man, reversed": {**_DOG, "scheme": "none", "causal": False},
            "A causal mask alone": {**_DOG, "scheme": "none", "causal": True},
            "Mask, a swap, 1 layer": {**_SWAP, "n_layers": 1},
            "Mask, a swap, 2 layers": {**_SWAP, "n_layers": 2},
            "Sinusoidal": {**_DOG, "scheme": "sinusoidal", "causal": False},
            "RoPE": {**_DOG, "scheme": "rope", "causal": False},
            "ALiBi, reversed": {**_DOG, "scheme": "alibi", "causal": False},
            "ALiBi, rotated": {**_DOG, "scheme": "alibi", "causal": False, "reordering": "rotate"},
        }
    )
    d_model, n_heads = 16, 4

    def make_controls(self):
        return {
            "sentence": controls.choice("sentence", SENTENCES, SENTENCES[0]),
            "reordering": controls.choice("reordering", REORDERINGS, "swap"),
            "first": controls.integer("swap this place", 0, 0, 2),
            "second": controls.integer("with this one", 2, 0, 2),
            "scheme": controls.choice("positions", SCHEMES, "none"),
            "causal": controls.switch("causal mask"),
            "n_layers": controls.integer("layers", 1, 1, 3),
            "weights": controls.choice(
                "weights", {"by hand: 2 channels, 1 head": HAND, "random: 16 channels, 4 heads": RANDOM}, RANDOM
            ),
            "head": controls.integer("head shown", 0, 0, self.n_heads - 1),
            "seed": controls.integer("seed", 0, 0, 40),
        }

    def make_view(self):
        return ReorderingView()

    def couple(self, name):
        if name == "sentence":
            last = len(self.controls["sentence"].value.split()) - 1
            for place in ("first", "second"):
                self.controls[place].max = last
        elif name == "weights":
            self.controls["head"].max = 0 if self.controls["weights"].value == HAND else self.n_heads - 1
        elif name in ("first", "second"):
            self.controls["reordering"].value = "swap"

    def compute(self, *, sentence, reordering, first, second, scheme, causal, n_layers, weights, head, seed):
        words = tuple(sentence.split())
        by_hand = weights == HAND
        x = _by_hand(words) if by_hand else maths.embed(words, self.d_model, seed=seed)
        attend = maths.SelfAttention.random(
            x.shape[1], 1 if by_hand else self.n_heads, scheme=scheme, causal=causal, n_layers=n_layers, seed=seed
        )
        if by_hand:
            # Scores are ln 2 times inner products, so that weights go as powers of two.
            unit = np.eye(2)
            attend = replace(
                attend, layers=n_layers * (maths.Projections(np.log(2) * 2**0.5 * unit, unit, unit, unit),)
            )
        order = maths.reorder(reordering, len(words), i=first, j=second, seed=seed)
        return Reordered(
            words=words,
            order=order,
            written=attend(x),
            moved=attend(x[order]),
            gap=maths.equivariance_gap(attend, x, order),
            invariance=float(np.abs(maths.invariance_gap(attend, x, order)).max()),
            shift=float(np.abs(maths.shift_gap(attend, x, SHIFT)).max()),
            weights=attend.weights(x[order])[-1, head],
            written_weights=attend.weights(x)[-1, head][np.ix_(order, order)],
            causal=causal,
        )

    def rows(self, data):
        largest = data.largest
        token, channel = np.unravel_index(np.abs(data.gap).argmax(), data.gap.shape)
        where = "nowhere" if largest <= EXACT else f"{_word(data, token)}, channel {channel}"
        return [
            Row("X, as written", " ".join(data.words)),
            Row("PX, reordered", " ".join(data.words[i] for i in data.order)),
            Row("Attn(X), channels 0 and 1", _heads_of(data.written)),
            Row("Attn(PX), channels 0 and 1", _heads_of(data.moved)),
            Row("largest |Attn(PX) − P·Attn(X)|", number(largest, 4), _colour(largest)),
            Row(
                "its size as a power of ten", f"10^{round(np.log10(largest), 1) + 0.0:.1f}" if largest else "exactly 0"
            ),
            Row("equivariant (outputs move along)?", _verdict(largest)),
            Row("largest |Attn(PX) − Attn(X)|", number(data.invariance, 4)),
            Row("invariant (outputs stay)?", _verdict(data.invariance)),
            Row("largest difference stands at", where),
            Row("words whose output has changed", _changed(data)),
            Row("size of the outputs (RMS)", number(float(moments(data.moved.ravel()).rms), 3)),
            Row(f"all words {SHIFT} places further on: largest change", number(data.shift, 4)),
        ]


def _by_hand(words: Sequence[str]) -> NDArray:
    vocabulary = list(dict.fromkeys(words))
    return np.array([_HAND_VECTORS[vocabulary.index(word)] for word in words], dtype=float)


def _heads_of(outputs: NDArray, most: int = 3) -> str:
    shown = [vector(output[:2], 4) for output in outputs[:most]]
    return " ".join(shown + ["…"] * (len(outputs) > most))


def _verdict(largest: float) -> str:
    return f"yes, to {EXACT:.0e}" if largest <= EXACT else "no"


def _colour(largest: float) -> str:
    return theme.FIRST if largest <= EXACT else theme.SECOND


def _word(data: Reordered, place: int) -> str:
    return f"{data.order[place]} {data.words[data.order[place]]}"


def _changed(data: Reordered) -> str:
    changed = [_word(data, place) for place in np.flatnonzero(data.token_gaps > EXACT)]
    if not changed:
        return "none"
    return f"{len(changed)} of {len(data.words)}: " + ", ".join(changed)
