"""What T5's and ALiBi's bias do to the attention weights of a fixed content."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.relative_bias import BIAS, WITH, WITHOUT, BiasAndWeightsView, BiasedWeights
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import relative_bias
from transformer_parts.maths.attention import attention_weights, causal_mask, entropy, scores
from transformer_parts.models.excerpt import load_excerpt

LENGTH = 48
WIDTH = 64
_LAYER = 16
_START = MappingProxyType(
    {
        "bidirectional": False, "n_heads": 8, "head": 2, "content": "equal", "seed": 1, "query": 40,
        "num_buckets": 32, "max_distance": 128, "divided": False,
    }
)  # fmt: skip


class BiasAndWeights(Panel[BiasedWeights]):
    """One head: its bias matrix, and its weights with the bias and without."""

    alt = _(
        "Top left, the bias matrix of one head, a row for each query, blue where it is negative and red where it is"
        " positive; top right, the attention weights with the bias, the bluer the larger. A frame marks one query."
        " Bottom left, that query's bias against the key position; bottom right its weights, with the bias upwards in"
        " blue, without it downwards in red."
    )
    handles = MappingProxyType(
        {
            "query": Handle(_("query whose row is framed"), ("query",), "y"),
        }
    )
    primary = ("scheme", "query", "head", "content")
    presets = MappingProxyType(
        {
            _("ALiBi, m = 1/4"): {**_START, "scheme": "alibi"},
            _("ALiBi, m = 1/256"): {**_START, "scheme": "alibi", "head": 8},
            _("ALiBi on random content"): {**_START, "scheme": "alibi", "head": 4, "content": "random"},
            _("T5's encoder"): {**_START, "scheme": "t5", "bidirectional": True, "content": "random", "query": 24},
            _("T5's decoder"): {**_START, "scheme": "t5", "content": "random"},
            _("T5 divided by √K"): {**_START, "scheme": "t5", "content": "random", "divided": True},
        }
    )
    play = "query"
    play_interval = 150

    def make_controls(self):
        self._excerpt = load_excerpt()
        contents = {
            _("all scores equal"): "equal",
            _("random q and k"): "random",
            _("real q and k, not turned (layer {layer})", layer=_LAYER): "real",
        }
        return {
            "scheme": controls.choice(
                _("bias"), {_("none"): "none", "ALiBi": "alibi", _("T5 (made-up scalars)"): "t5"}, "alibi"
            ),
            "bidirectional": controls.choice(_("direction"), {_("causal"): False, _("bidirectional"): True}, False),
            "n_heads": controls.integer(_("heads n"), 8, 1, 32),
            "head": controls.integer(_("head h"), 2, 1, 8),
            "content": controls.choice(_("content"), contents, "equal"),
            "seed": controls.integer(_("content number"), 1, 0, self._excerpt.n_heads - 1),
            "query": controls.integer(_("query i"), 40, 0, LENGTH - 1),
            "num_buckets": controls.integer(_("T5: buckets"), 32, 4, 64, step=2),
            "max_distance": controls.stops(_("T5: distance M"), 128, (33, 48, 64, 128, 256)),
            "divided": controls.switch(_("divide by √K where it does not belong")),
        }

    def couple(self, name):
        if name == "n_heads":
            self.controls["head"].max = self.controls["n_heads"].value

    def idle(self, state):
        reasons = {}
        if state["scheme"] != "t5":
            reasons |= dict.fromkeys(("num_buckets", "max_distance"), _("Only T5's bias has buckets."))
        if state["content"] == "equal":
            reasons["seed"] = _("All scores are equal: there is one such content.")
        return reasons

    def make_view(self):
        return BiasAndWeightsView()

    def compute(
        self, *, scheme, bidirectional, n_heads, head, content, seed, query, num_buckets, max_distance, divided
    ):
        q, k = self._content(content, seed)
        bias, slope, parameters = np.zeros((1, LENGTH, LENGTH)), np.nan, 0
        scale = None  # 1/√K
        if scheme == "alibi":
            slope = float(relative_bias.alibi_slopes(n_heads)[head - 1])
            # Added before the division, the bias would be divided too.
            bias = relative_bias.alibi_bias([slope / np.sqrt(WIDTH) if divided else slope], LENGTH)
        elif scheme == "t5":
            table = _made_up(num_buckets, head, bidirectional)
            bias = relative_bias.t5_bias(table, LENGTH, bidirectional=bidirectional, max_distance=max_distance)
            parameters = num_buckets * n_heads
            # T5's W_q is drawn smaller by √K from the beginning, so the logits are q·k undivided.
            q, scale = q / np.sqrt(WIDTH), None if divided else 1.0
        visible = np.ones((LENGTH, LENGTH), bool) if bidirectional else causal_mask(LENGTH)
        plain, biased = (attention_weights(q, k, mask=visible, bias=b, scale=scale)[0] for b in (None, bias))
        return BiasedWeights(
            bias=bias[0],
            plain=plain,
            biased=biased,
            visible=visible,
            entropies=(float(entropy(plain[query])), float(entropy(biased[query]))),
            spread=float(scores(q, k, scale=scale)[0][visible].std()),
            slope=slope,
            parameters=parameters,
            query=query,
        )

    def _content(self, content: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        if content == "equal":
            return np.zeros((1, LENGTH, WIDTH)), np.zeros((1, LENGTH, WIDTH))
        if content == "random":
            q, k = np.random.default_rng(seed).standard_normal((2, 1, LENGTH, WIDTH))
            return q, k
        q, k = self._excerpt.query(_LAYER, seed), self._excerpt.key(_LAYER, seed)
        return q[None, :LENGTH], k[None, :LENGTH]

    def rows(self, data):
        i = data.query
        # Distances from the query backwards, as far as there are keys.
        back = [d for d in (0, 1, 8, 32) if d <= i]
        distances = ", ".join(map(str, back))
        last = int(data.biased[i].argmax())
        plain, biased = np.exp(data.entropies)
        return [
            Row(_("slope m of the head"), "—" if np.isnan(data.slope) else number(data.slope)),
            Row(
                _("bias at distance {distances} back", distances=distances),
                ", ".join(number(data.bias[i, i - d], 4) for d in back),
                BIAS,
            ),
            Row(
                _("weights at distance {distances}", distances=distances),
                ", ".join(number(data.biased[i, i - d], 4) for d in back),
                WITH,
            ),
            Row(_("without the bias"), ", ".join(number(data.plain[i, i - d], 4) for d in back), WITHOUT),
            Row(_("strongest key, its weight"), f"{last}, {number(data.biased[i, last], 4)}", WITH),
            Row(
                _("keys effectively read, exp H"),
                _("{some} of {all}", some=number(biased, 2), all=int(data.visible[i].sum())),
                WITH,
            ),
            Row(_("the same without the bias"), number(plain, 2), WITHOUT),
            Row(_("spread of the content's logits"), number(data.spread, 4)),
            Row(_("learned numbers, once for all layers"), f"{data.parameters:,}"),
            Row(_("stored in the cache for positions"), _("0 bytes")),
        ]


def _made_up(num_buckets: int, head: int, bidirectional: bool) -> np.ndarray:
    """Return scalars such as a trained head might have, (num_buckets, 1): a preference by distance, and noise.

    Odd heads prefer what is near, every fourth what is far, each by an amount of its own; the directions differ.
    """
    rng = np.random.default_rng(head)
    n = num_buckets // 2 if bidirectional else num_buckets
    preference = rng.uniform(3, 7) * (1 if head % 4 else -0.5)
    sides = [preference * (0.5 - np.linspace(0, 1, n)) + rng.normal(0, 1) + rng.normal(0, 0.4, n) for _ in range(2)]
    return np.concatenate(sides)[:num_buckets, None]
