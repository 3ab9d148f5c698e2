"""Explorers of RoPE's two layouts: rows, pairs and scores of one head."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.rope_layout import (
    DIFFERENCE,
    READ,
    RIGHT,
    HeadReadings,
    Layouts,
    RopeLayoutHeadsView,
    RopeLayoutsView,
)
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import attention, rope, rope_layout
from transformer_parts.models.excerpt import load_excerpt

TRAINED = "interleaved"
_AS_TRAINED = "as trained"
_HEAD_16 = MappingProxyType(
    {"head_dim": 16, "rotary_dim": 16, "layout": "split", "offset": -6, "seed": 13, "rope_base": 10000.0}
)


class RopeLayouts(Panel[Layouts]):
    """Weights trained with interleaved pairs, code that pairs one way or the other, rows moved or not."""

    alt = _(
        "Top left: the channels of a head as a row of numbers; arcs above join the pairs of training, arcs below the"
        " pairs that the code turns. Top right: the permutation of the rows, filled squares as done, open squares as"
        " needed. Below: the score against the offset n - m as trained and as read, and their difference."
    )
    handles = MappingProxyType(
        {
            "offset": Handle(_("offset between query and key"), ("offset",), "x"),
        }
    )
    primary = ("layout", "rows", "offset", "head_dim")
    presets = MappingProxyType(
        {
            _("By hand: head_dim 4"): {
                "head_dim": 4, "rotary_dim": 4, "layout": "split", "rows": _AS_TRAINED, "offset": 2, "seed": 0,
                "rope_base": 10000.0,
            },
            _("Wrong layout"): {**_HEAD_16, "rows": _AS_TRAINED},
            _("Rows permuted"): {**_HEAD_16, "rows": "split"},
            _("Permuted the wrong way"): {**_HEAD_16, "rows": "interleaved"},
            _("Partial: 8 of 16"): {**_HEAD_16, "rows": _AS_TRAINED, "rotary_dim": 8},
        }
    )  # fmt: skip
    reach = 64
    steps = 8
    offsets = np.linspace(-reach, reach, 2 * reach * steps + 1)

    def make_controls(self):
        return {
            "layout": controls.choice(
                _("the code pairs"), {_("neighbours (interleaved)"): TRAINED, _("halves (split)"): "split"}, "split"
            ),
            "rows": controls.choice(
                _("rows"),
                {
                    _("as trained (interleaved)"): _AS_TRAINED,
                    _("permuted to split"): "split",
                    _("permuted the wrong way"): "interleaved",
                },
                _AS_TRAINED,
            ),
            "head_dim": controls.integer("head_dim", 16, 2, 128, step=2),
            "rotary_dim": controls.integer("rotary_dim", 16, 2, 16, step=2),
            "offset": controls.integer("n − m", -6, -self.reach, self.reach),
            "seed": controls.integer(_("content"), 13, 0, 40),
            "rope_base": controls.power(_("base"), 10000.0, 10, 1e7, form=",.0f", also=[5e5]),
        }

    def make_view(self):
        return RopeLayoutsView()

    def couple(self, name):
        if name == "head_dim":
            head_dim, rotary_dim = self.controls["head_dim"].value, self.controls["rotary_dim"]
            whole = rotary_dim.value == rotary_dim.max
            rotary_dim.max = head_dim
            if whole:
                rotary_dim.value = head_dim

    def compute(self, *, layout, rows, head_dim, rotary_dim, offset, seed, rope_base):
        query, key = _content(head_dim, seed)
        as_trained = np.arange(head_dim)
        to_split = rope_layout.permutation(head_dim, "split", rotary_dim=rotary_dim)
        order = as_trained if rows == _AS_TRAINED else rope_layout.permutation(head_dim, rows, rotary_dim=rotary_dim)
        # Where each channel of training is now.
        place = np.argsort(order)
        trained = place[rope_layout.pair_indices(head_dim, TRAINED, rotary_dim=rotary_dim)]
        turned = rope_layout.pair_indices(head_dim, layout, rotary_dim=rotary_dim)
        agreement = rope_layout.agreement(trained, turned, rope.inv_freq(rotary_dim, rope_base), head_dim, self.offsets)
        scores = rope_layout.read_scores(
            query, key, self.offsets, order, layout, trained=TRAINED, rope_base=rope_base, rotary_dim=rotary_dim
        )
        here = (offset + self.reach) * self.steps
        return Layouts(
            order=order,
            needed=to_split if layout == "split" else as_trained,
            trained=trained,
            turned=turned,
            offsets=self.offsets,
            right=scores.right,
            read=scores.read,
            difference=scores.difference,
            typical=rope_layout.difference_std(query, key, agreement),
            offset=offset,
            marked=tuple(float(values[here]) for values in scores),
            agreement=float(agreement[here]),
        )

    def rows(self, data):
        right, read, difference = data.marked
        fitting = int((data.trained == data.turned).all(axis=1).sum())
        return [
            Row(_("pairs of training, by row (arcs above)"), _pairs(data.trained), RIGHT),
            Row(_("pairs the code turns (arcs below)"), _pairs(data.turned), READ),
            Row(_("pairs that fit"), _("{some} of {all}", some=fitting, all=len(data.turned))),
            Row(_("channels, row by row"), _channels(data.order)),
            Row(_("score s, as trained"), number(right), RIGHT),
            Row(_("score ŝ, as the code reads it"), number(read), READ),
            Row(_("difference ŝ − s"), number(difference), DIFFERENCE),
            Row(_("largest difference, |n − m| ≤ 64"), number(np.abs(data.difference).max())),
            Row(_("correlation of ŝ and s, random content"), number(data.agreement, 3)),
        ]


def _content(head_dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a query and a key: those of the example by hand, repeated to the width, or random ones."""
    if seed == 0:
        return np.resize([1.0, 2.0, 3.0, 4.0], head_dim), np.resize([2.0, 1.0, 0.0, 1.0], head_dim)
    query, key = np.random.default_rng(seed).standard_normal((2, head_dim))
    return query, key


def _pairs(pairs: np.ndarray, most: int = 4) -> str:
    shown = [f"({a}, {b})" for a, b in pairs[:most].tolist()]
    return " ".join(shown + ["…"] * (len(pairs) > most))


def _channels(order: np.ndarray, most: int = 16) -> str:
    return " ".join([*map(str, order[:most].tolist()), *["…"] * (len(order) > most)])


class RopeLayoutHeads(Panel[HeadReadings]):
    """A real head's attention as trained (interleaved pairs) beside what code with split pairs makes of it."""

    alt = _(
        "Top: two square maps of a real head's attention weights, left as trained, right as read in the wrong layout;"
        " a frame marks one query. Bottom left: that query's weights, as trained upwards, as read downwards. Bottom"
        " right: the size of the scores' difference against the distance i - j."
    )
    handles = MappingProxyType(
        {
            "query": Handle(_("query token"), ("query",), "y"),
        }
    )
    presets = MappingProxyType(
        {
            _("Previous token: 16, 0"): {"layer": 16, "head": 0, "query": 41},
            _("Induction: 17, 4"): {"layer": 17, "head": 4, "query": 47},
            _("The first token"): {"layer": 16, "head": 0, "query": 0},
            _("Early layer: 1, 2"): {"layer": 1, "head": 2, "query": 41},
        }
    )
    play = "query"
    play_interval = 250

    def make_controls(self):
        self.excerpt = load_excerpt()
        last = len(self.excerpt.token_ids) - 1
        return {
            "layer": controls.stops(_("layer"), 16, self.excerpt.qk_layers),
            "head": controls.integer(_("head"), 0, 0, self.excerpt.n_heads - 1),
            "query": controls.integer(_("query token i"), 41, 0, last),
        }

    def make_view(self):
        return RopeLayoutHeadsView()

    def compute(self, *, layer, head, query):
        q, k = self.excerpt.query(layer, head), self.excerpt.key(layer, head)
        places = np.arange(len(q))
        scores, weights = [], []
        for layout in ("interleaved", "split"):
            turned = [rope.rotate(x, places, rope_base=self.excerpt.rope_base, layout=layout)[None] for x in (q, k)]
            scores.append(attention.scores(*turned)[0])
            weights.append(attention.attention_weights(*turned, causal=True)[0])
        differences = scores[1] - scores[0]
        return HeadReadings(
            right=weights[0],
            read=weights[1],
            differences=differences,
            rms=rope_layout.rms_by_distance(differences),
            spread=float(scores[0][np.tril_indices(len(q))].std()),
            moved=rope_layout.total_variation(*weights),
            query=query,
        )

    def rows(self, data):
        i = data.query
        kept = (data.right.argmax(axis=-1) == data.read.argmax(axis=-1)).mean()
        return [
            Row(_("query token"), self._token(i)),
            Row(_("looks most at, as trained"), self._strongest(data.right[i]), RIGHT),
            Row(_("looks most at, as read"), self._strongest(data.read[i]), READ),
            Row(_("weight that moved, this query"), number(data.moved[i], 3)),
            Row(_("weight that moved, mean over the passage"), number(data.moved.mean(), 3)),
            Row(_("queries that keep their strongest key"), f"{100 * kept:.0f} %"),
            Row(_("scores' RMS difference at distance 0"), number(data.rms[0]), DIFFERENCE),
            Row(_("at distance 1, 8, 64"), ", ".join(number(data.rms[d], 2) for d in (1, 8, 64)), DIFFERENCE),
            Row(_("spread of the right scores (dashed)"), number(data.spread, 2)),
        ]

    def _strongest(self, weights: np.ndarray) -> str:
        j = int(weights.argmax())
        return _("{token}, weight {weight}", token=self._token(j), weight=number(weights[j], 3))

    def _token(self, i: int) -> str:
        return f"{i} “{self.excerpt.token_texts[i]}”"
