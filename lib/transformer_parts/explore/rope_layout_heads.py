"""Heads of a real model, their queries and keys read in the right and in the wrong layout."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.rope_layout import DIFFERENCE, READ, RIGHT
from transformer_parts.draw.rope_layout_heads import HeadReadings, HeadReadingsView
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.maths import attention, rope, rope_layout_errors
from transformer_parts.models.excerpt import load_excerpt


class RopeLayoutHeads(Panel[HeadReadings]):
    """A real head's attention as trained (interleaved pairs) beside what code with split pairs makes of it."""

    alt = (
        "Top: two square maps of a real head's attention weights, left as trained, right as read in the wrong layout;"
        " a frame marks one query. Bottom left: that query's weights, as trained upwards, as read downwards. Bottom"
        " right: the size of the scores' difference against the distance i - j."
    )
    still = "figures/rope_layout_heads.png"
    presets = MappingProxyType(
        {
            "Previous token: 16, 0": {"layer": 16, "head": 0, "query": 41},
            "Induction: 17, 4": {"layer": 17, "head": 4, "query": 47},
            "The first token": {"layer": 16, "head": 0, "query": 0},
            "Early layer: 1, 2": {"layer": 1, "head": 2, "query": 41},
        }
    )
    play = "query"
    play_interval = 250

    def make_controls(self):
        self.excerpt = load_excerpt()
        last = len(self.excerpt.token_ids) - 1
        return {
            "layer": controls.stops("layer", 16, self.excerpt.qk_layers),
            "head": controls.integer("head", 0, 0, self.excerpt.n_heads - 1),
            "query": controls.integer("query token i", 41, 0, last),
        }

    def make_view(self):
        return HeadReadingsView()

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
            rms=rope_layout_errors.rms_by_distance(differences),
            spread=float(scores[0][np.tril_indices(len(q))].std()),
            moved=rope_layout_errors.total_variation(*weights),
            query=query,
        )

    def rows(self, data):
        i = data.query
        kept = (data.right.argmax(axis=-1) == data.read.argmax(axis=-1)).mean()
        return [
            Row("query token", self._token(i)),
            Row("looks most at, as trained", self._strongest(data.right[i]), RIGHT),
            Row("looks most at, as read", self._strongest(data.read[i]), READ),
            Row("weight that moved, this query", number(data.moved[i], 3)),
            Row("weight that moved, mean over the passage", number(data.moved.mean(), 3)),
            Row("queries that keep their strongest key", f"{100 * kept:.0f} %"),
            Row("scores' RMS difference at distance 0", number(data.rms[0]), DIFFERENCE),
            Row("at distance 1, 8, 64", ", ".join(number(data.rms[d], 2) for d in (1, 8, 64)), DIFFERENCE),
            Row("spread of the right scores (dashed)", number(data.spread, 2)),
        ]

    def _strongest(self, weights: np.ndarray) -> str:
        j = int(weights.argmax())
        return f"{self._token(j)}, weight {number(weights[j], 3)}"

    def _token(self, i: int) -> str:
        return f"{i} “{self.excerpt.token_texts[i]}”"
