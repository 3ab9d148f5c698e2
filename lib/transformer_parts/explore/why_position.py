"""Explorer of why position matters: attention over a sentence and over the same words reordered."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.why_position import EXACT, Reordered, ReorderingView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number, vector
from transformer_parts.language import _, join
from transformer_parts.maths import why_position as maths
from transformer_parts.maths.norms import moments

SENTENCES = ("dog bites man", "only I saw her today", "the cat that chased the dog saw the man")
# Translators: words of the sentences, each translated alone, because a sentence is shown with its words in any order.
_WORDS = (
    _("dog"), _("bites"), _("man"), _("only"), _("I"), _("saw"), _("her"), _("today"), _("the"), _("cat"), _("that"),
    _("chased"),
)  # fmt: skip
REORDERINGS = MappingProxyType(
    {
        _("as written"): "none",
        _("swap two words"): "swap",
        _("reverse"): "reverse",
        _("rotate: the last comes first"): "rotate",
        _("shuffle"): "shuffle",
    }
)
SCHEMES = MappingProxyType(
    {
        _("none"): "none",
        _("sinusoidal, added"): "sinusoidal",
        _("learned table, added"): "learned",
        _("T5 bias on the scores"): "t5",
        _("ALiBi bias on the scores"): "alibi",
        _("RoPE on query and key"): "rope",
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
    """The words, how they are reordered, and how attention's outputs change with their order."""

    alt = _(
        "Above, two heat maps: attention's outputs for a sentence as written and for the same words reordered, a row"
        " for each token. Below, one head's attention weights as squares, filled for the reordered sentence and open"
        " for the one as written with its tokens moved; the difference of the outputs, token by token; and its largest"
        " entry of each token on a logarithmic scale."
    )
    handles = MappingProxyType(
        {
            "first": Handle(_("one of the two places that are swapped"), ("first",), "y"),
            "second": Handle(_("the other of the two places"), ("second",), "y"),
        }
    )
    primary = ("sentence", "reordering", "scheme", "causal")
    presets = MappingProxyType(
        {
            _("By hand"): {**_DOG, "weights": HAND, "scheme": "none", "causal": False},
            _("By hand, masked"): {**_DOG, "weights": HAND, "scheme": "none", "causal": True},
            _("Dog bites man, reversed"): {**_DOG, "scheme": "none", "causal": False},
            _("A causal mask alone"): {**_DOG, "scheme": "none", "causal": True},
            _("Mask, a swap, 1 layer"): {**_SWAP, "n_layers": 1},
            _("Mask, a swap, 2 layers"): {**_SWAP, "n_layers": 2},
            _("Sinusoidal"): {**_DOG, "scheme": "sinusoidal", "causal": False},
            "RoPE": {**_DOG, "scheme": "rope", "causal": False},
            _("ALiBi, reversed"): {**_DOG, "scheme": "alibi", "causal": False},
            _("ALiBi, rotated"): {**_DOG, "scheme": "alibi", "causal": False, "reordering": "rotate"},
        }
    )
    d_model, n_heads = 16, 4

    def make_controls(self):
        return {
            "sentence": controls.choice(_("sentence"), [_shown(words.split()) for words in SENTENCES], SENTENCES[0]),
            "reordering": controls.choice(_("reordering"), REORDERINGS, "swap"),
            "first": controls.integer(_("swap this place"), 0, 0, 2),
            "second": controls.integer(_("with this one"), 2, 0, 2),
            "scheme": controls.choice(_("positions"), SCHEMES, "none"),
            "causal": controls.switch(_("causal mask")),
            "n_layers": controls.integer(_("layers"), 1, 1, 3),
            "weights": controls.choice(
                _("weights"),
                {_("by hand: 2 channels, 1 head"): HAND, _("random: 16 channels, 4 heads"): RANDOM},
                RANDOM,
            ),
            "head": controls.integer(_("head shown"), 0, 0, self.n_heads - 1),
            "seed": controls.integer(_("seed"), 0, 0, 40),
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
            swapped=(first, second),
            shown=tuple(map(_shown, [[word] for word in words])),
        )

    def rows(self, data):
        largest = data.largest
        token, channel = np.unravel_index(np.abs(data.gap).argmax(), data.gap.shape)
        where = _("{word}, channel {channel}", word=_word(data, token), channel=channel)
        return [
            Row(_("X, as written"), _shown(data.words)),
            Row(_("PX, reordered"), _shown([data.words[i] for i in data.order])),
            Row(_("Attn(X), channels 0 and 1"), _heads_of(data.written)),
            Row(_("Attn(PX), channels 0 and 1"), _heads_of(data.moved)),
            Row(_("largest |Attn(PX) − P·Attn(X)|"), number(largest, 4), _colour(largest)),
            Row(
                _("its size as a power of ten"),
                f"10^{round(np.log10(largest), 1) + 0.0:.1f}" if largest else _("exactly 0"),
            ),
            Row(_("equivariant (outputs move along)?"), _verdict(largest)),
            Row(_("largest |Attn(PX) − Attn(X)|"), number(data.invariance, 4)),
            Row(_("invariant (outputs stay)?"), _verdict(data.invariance)),
            Row(_("largest difference stands at"), where if largest > EXACT else _("nowhere")),
            Row(_("words whose output has changed"), _changed(data)),
            Row(_("size of the outputs (RMS)"), number(float(moments(data.moved.ravel()).rms), 3)),
            Row(_("all words {count} places further on: largest change", count=SHIFT), number(data.shift, 4)),
        ]


def _by_hand(words: Sequence[str]) -> NDArray:
    vocabulary = list(dict.fromkeys(words))
    return np.array([_HAND_VECTORS[vocabulary.index(word)] for word in words], dtype=float)


def _shown(words: Sequence[str]) -> str:
    """Return the words of a sentence as a message."""
    return join(" ", [_WORDS[_WORDS.index(word)] for word in words])


def _heads_of(outputs: NDArray, most: int = 3) -> str:
    shown = [vector(output[:2], 4) for output in outputs[:most]]
    return " ".join(shown + ["…"] * (len(outputs) > most))


def _verdict(largest: float) -> str:
    return _("yes, to {bound:.0e}", bound=EXACT) if largest <= EXACT else _("no")


def _colour(largest: float) -> str:
    return theme.FIRST if largest <= EXACT else theme.SECOND


def _word(data: Reordered, place: int) -> str:
    index = data.order[place]
    return join(" ", [str(index), _shown([data.words[index]])])


def _changed(data: Reordered) -> str:
    changed = [_word(data, place) for place in np.flatnonzero(data.token_gaps > EXACT)]
    if not changed:
        return _("none")
    return _("{some} of {all}: {words}", some=len(changed), all=len(data.words), words=join(", ", changed))
