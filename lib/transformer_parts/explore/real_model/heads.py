"""The heads of a real model on a passage: where each looks, and how the clocks of query and key make one score."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.real_model import Head, RealModelHeadsView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.readout import Row, number
from transformer_parts.explore.real_model.reading import PassagePanel
from transformer_parts.language import _
from transformer_parts.maths import attention, rope

SINK, ENTROPY, OF_QUERY = _("weight on token 0"), _("entropy, mean of the queries"), _("entropy of query i")


class RealModelHeads(PassagePanel[Head]):
    """A head's attention map, all heads beside it, and the clocks of one query and one key."""

    alt = _(
        "Left: a head's attention weights, a row for each query. Right: a number for each head, a row for each layer,"
        " red where it is large. Frames mark the chosen query and the chosen head, a gold dot the chosen key. Below: a"
        " clock for each pair of channels, the long thin hand the query's and the short thick one the key's, gold where"
        " the pair adds to their score and grey where it takes away."
    )
    presets = MappingProxyType(
        {
            _("The attention sink"): {"layer": 24, "head": 0, "query": 17, "key": 0, "shown": SINK},
            _("Before there is a sink"): {"layer": 0, "head": 0, "query": 17, "key": 16, "shown": SINK},
            _("The previous token"): {"layer": 16, "head": 0, "query": 17, "key": 16, "shown": ENTROPY},
            _("The same words before"): {"layer": 17, "head": 4, "query": 17, "key": 5, "shown": OF_QUERY},
        }
    )
    play = "layer"
    play_interval = 250
    primary = ("layer", "head", "query", "key", "shown")
    tokens = MappingProxyType({"query": 0, "key": 0})
    guide = MappingProxyType(
        {
            _("The attention sink"): _("This head puts most of its weight on token 0, whatever the query."),
            _("Before there is a sink"): _("In layer 0 token 0 gets little weight."),
            _("The previous token"): _(
                "The dark cells lie beside the diagonal: each query looks at the token before it."
            ),
            _("The same words before"): _("“harbour” came after the first “old”: the second “old” looks there."),
        }
    )
    handles = MappingProxyType(
        {
            "query": Handle(_("row of the query"), ("query",), "y"),
            "key": Handle(_("key in the query's row"), ("key",), "x"),
            "one": Handle(_("head of the model"), ("layer", "head")),
        }
    )

    def make_controls(self):
        last, sizes = len(self.passage) - 1, self.passage.settings
        return {
            "layer": controls.integer(_("layer ℓ"), 16, 0, sizes["n_layers"] - 1),
            "head": controls.integer(_("head h"), 0, 0, sizes["n_heads"] - 1),
            "query": controls.integer(_("query token i"), min(17, last), 0, last),
            "key": controls.integer(_("key token j"), min(16, last), 0, last),
            "shown": controls.choice(_("of all heads"), [SINK, ENTROPY, OF_QUERY], SINK),
        }

    def make_view(self):
        return RealModelHeadsView()

    def couple(self, name):
        # A query sees no later key.
        query, key = self.controls["query"], self.controls["key"]
        if name == "query" and key.value > query.value:
            key.value = query.value
        elif name == "key" and query.value < key.value:
            query.value = key.value

    def compute(self, *, layer, head, query, key, shown):
        passage, sizes = self.passage, self.passage.settings
        q, k = passage.query[layer, head, query], passage.key_of(layer, head)[key]
        turn = {"rope_base": sizes["rope_base"], "layout": sizes["layout"]}
        turned = rope.rotate(np.stack([q, k]), [query, key], **turn)
        pairs = rope.to_pairs(turned, sizes["layout"])
        if shown == SINK:
            # The mean of the later queries: token 0 sees nothing else.
            every_head = passage.weights[:, :, 1:, 0].mean(axis=-1)
        elif shown == ENTROPY:
            every_head = self._entropies.mean(axis=-1)
        else:
            every_head = self._entropies[:, :, query]
        return Head(
            weights=passage.weights[layer, head],
            query=query,
            key=key,
            every_head=every_head,
            layer=layer,
            head=head,
            query_pairs=pairs[0],
            key_pairs=pairs[1],
            parts=(pairs[0].conj() * pairs[1]).real / len(q) ** 0.5,
            tokens=passage.token_texts,
            title=next(title for title in (SINK, ENTROPY, OF_QUERY) if title == shown),
        )

    def track(self, handle):
        view, sizes, tokens = self.view, self.passage.settings, np.arange(len(self.passage))
        if handle == "one":
            return view.at(view.heads_axes, np.arange(sizes["n_heads"]), np.arange(sizes["n_layers"])[:, None])
        if handle == "query":
            return view.at(view.map_axes, -0.5, tokens)
        # A later key takes its query along.
        return view.at(view.map_axes, tokens, np.maximum(tokens, self.state["query"]))

    @property
    def _entropies(self) -> np.ndarray:
        """The entropy of every head's every query, (N, H, L), computed once for a passage."""
        if self._entropies_of[0] is not self.passage:
            # Weights held in 16 bits no longer sum to 1 exactly.
            weights = self.passage.weights / self.passage.weights.sum(axis=-1, keepdims=True)
            self._entropies_of = self.passage, attention.entropy(weights)
        return self._entropies_of[1]

    _entropies_of = (None, None)

    def rows(self, data):
        i, j = data.query, data.key
        row = data.weights[i]
        grouped = self.passage.settings["n_heads"] // self.passage.settings["n_kv_heads"]
        entropy = number(self._entropies[data.layer, data.head, i], 3)
        strongest = int(row.argmax())
        return [
            Row(_("query"), self.token(i), theme.QUERY, mark="query"),
            Row(_("key (of kv head {head})", head=data.head // grouped), self.token(j), theme.KEY, mark="key"),
            Row(_("their score, the sum of the clocks"), number(data.parts.sum(), 3), theme.THIRD),
            Row(
                _("the clock that adds most, and what it adds"),
                f"{data.parts.argmax()}, {number(data.parts.max(), 3)}",
                minor=True,
            ),
            Row(_("attention weight of this key"), number(row[j], 3)),
            Row(_("the query looks most at"), f"{self.token(strongest)}, {number(row[strongest], 3)}", minor=True),
            Row(_("its entropy, of at most ln(i + 1)"), f"{entropy}, {number(np.log(i + 1), 3)}", minor=True),
            Row(
                _("the head's weight on token 0, mean of later queries"),
                number(data.weights[1:, 0].mean(), 3),
                minor=True,
            ),
        ]
