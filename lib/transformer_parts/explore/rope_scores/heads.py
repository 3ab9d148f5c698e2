"""RoPE's score against the offset, for queries and keys of a real model."""

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import envelope, window_of
from transformer_parts.draw.rope_scores import HeadCurve, ScoreCurveView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.explore.rope_scores.curve import COLUMNS, FEW_OFFSETS, curve_of, rows_of
from transformer_parts.language import _, join
from transformer_parts.maths import attention, rope, rope_scores
from transformer_parts.models.excerpt import load_excerpt

MEAN = -1
_KINDS = MappingProxyType({"previous token": _("previous token"), "induction": _("induction")})
_MEANS = MappingProxyType(
    {"query": MEAN, "key": MEAN, "sink": False, "rope_base": 1e5, "span": 72, "offset": -1, "shift": 0}
)


class RopeHeads(Panel[HeadCurve]):
    """Heads of SmolLM2-135M over one passage: the curve of their content, and the scores they really have."""

    alt = _(
        "Above: the score of a head of SmolLM2 against the offset n - m: small dots for every query and key of the"
        " passage, a curve for the mean query and key, a band for mean and spread over all contents; later keys,"
        " which no query sees, are hatched. Below: what each pair of channels adds to the curve."
    )
    handles = MappingProxyType(
        {
            "offset": Handle(_("offset between query and key"), ("offset",), "x"),
        }
    )
    primary = ("head", "query", "key", "offset")
    presets = MappingProxyType(
        {
            _("Layer 16 head 0: the previous token"): {**_MEANS, "head": (16, 0)},
            _("Layer 17 head 4: content decides"): {**_MEANS, "head": (17, 4)},
            _("Layer 17 head 4: “past” finds “four”"): {
                **_MEANS,
                "head": (17, 4),
                "query": 47,
                "key": 11,
                "offset": -36,
            },
            _("Layer 16 head 0, far out"): {**_MEANS, "head": (16, 0), "span": 8192},
        }
    )
    play = "shift"

    def __init__(self, *, language: str | None = None):
        self.excerpt = load_excerpt()
        super().__init__(language=language)

    def make_controls(self):
        excerpt = self.excerpt
        kinds = {(head.layer, head.head): head.kind for head in excerpt.telling_heads}
        every = [(layer, head) for layer in excerpt.qk_layers for head in range(excerpt.n_heads)]
        names = {
            _("layer {layer} head {head}, {kind}", layer=layer, head=head, kind=_KINDS[kind]): (layer, head)
            for (layer, head), kind in kinds.items()
        } | {
            _("layer {layer} head {head}", layer=layer, head=head): (layer, head)
            for layer, head in every
            if (layer, head) not in kinds
        }
        tokens = {_("mean of all"): MEAN} | {f"{i} “{text.strip()}”": i for i, text in enumerate(excerpt.token_texts)}
        return {
            "head": controls.choice(_("head"), names, (16, 0)),
            "query": controls.named(_("query"), tokens, MEAN),
            "key": controls.named(_("key"), tokens, MEAN),
            "sink": controls.switch(_("count token 0, the attention sink")),
            "rope_base": controls.power(_("base"), excerpt.rope_base, 10, 1e7, form=",.0f"),
            "span": controls.choice(_("offsets shown"), {_("the passage, 72"): 72, _("the context, 8,192"): 8192}, 72),
            "offset": controls.integer(_("offset n − m"), -1, -72, 0),
            "shift": controls.integer(_("move both by"), 0, 0, 1024),
        }

    def make_view(self):
        return ScoreCurveView()

    def couple(self, name):
        query, key = self.controls["query"].value, self.controls["key"].value
        if name in ("query", "key") and MEAN not in (query, key):
            # The distance of the two in the passage.
            self.controls["offset"].value = min(key - query, 0)
        if name == "span":
            self.controls["offset"].min = -self.controls["span"].value

    def compute(self, *, head, query, key, sink, rope_base, span, offset, shift):
        inv_freq = rope.inv_freq(self.excerpt.head_dim, rope_base)
        first = 0 if sink else 1
        queries, keys = self.excerpt.query(*head), self.excerpt.key(*head)
        one_query = queries[first:].mean(axis=0) if query == MEAN else queries[query]
        one_key = keys[first:].mean(axis=0) if key == MEAN else keys[key]
        # Behind the query the whole range, ahead of it an eighth, which no query of a decoder sees.
        offsets = np.arange(-span, span // 8 + 1)
        curve = curve_of(one_query, one_key, offsets, inv_freq, offset=offset, shift=shift)
        scores = curve.pop("scores")
        seen = offsets <= 0

        contents = queries[first:], keys[first:]
        at = curve["wave_offsets"]
        if len(offsets) <= FEW_OFFSETS:
            mean, deviation = rope_scores.content_scores(*contents, at, inv_freq)
        else:
            # The mean over each column; the spread, which changes slowly, at its middle.
            mean = rope.scores_by_offset(*(x.mean(axis=0) for x in contents), offsets, inv_freq=inv_freq)
            mean = envelope(offsets[0], mean, window_of(len(offsets), COLUMNS)).mean
            _, deviation = rope_scores.content_scores(*contents, np.rint(at), inv_freq)
        here = rope_scores.content_scores(*contents, [offset], inv_freq)
        dot_offsets, dots = self._scores_of_the_passage(*contents, first, inv_freq)
        return HeadCurve(
            **curve,
            band_offsets=at,
            mean=mean,
            deviation=deviation,
            dot_offsets=dot_offsets,
            dots=dots,
            measured=True,
            causal=True,
            query_name=self._name(query),
            key_name=self._name(key),
            peak=int(offsets[seen][scores[seen].argmax()]),
            peak_score=float(scores[seen].max()),
            r_squared=rope_scores.r_squared(dots, scores[dot_offsets + span]),
            mean_here=here[0].item(),
            deviation_here=here[1].item(),
        )

    def _scores_of_the_passage(
        self, queries: NDArray, keys: NDArray, first: int, inv_freq: NDArray
    ) -> tuple[NDArray, NDArray]:
        """Return offset and score of every query with every key that it sees, by turning both."""
        positions = np.arange(first, first + len(queries))
        turned = (rope.rotate(x, positions, inv_freq=inv_freq)[None] for x in (queries, keys))
        m, n = np.nonzero(attention.causal_mask(len(queries)))
        return n - m, attention.scores(*turned)[0, m, n]

    def _name(self, token: int) -> str:
        if token == MEAN:
            return _("mean of all")
        shown = f"“{self.excerpt.token_texts[token].strip()}”"
        return _("{token} at {place}", token=shown, place=token)

    def rows(self, data):
        spread = f"{number(data.mean_here, 4)} ± {number(data.deviation_here, 4)}"
        return [
            Row(_("query, key"), join(", ", [data.query_name, data.key_name])),
            *rows_of(data),
            Row(
                _("highest up to offset 0"),
                _("{score} at offset {offset:,}", score=number(data.peak_score, 4), offset=data.peak),
            ),
            Row(_("every query with every key, set at this offset: mean ± spread"), spread, theme.QUERY),
            Row(
                _("R² of the curve over the passage's {count:,} scores", count=len(data.dots)),
                number(data.r_squared, 3),
                theme.KEY,
            ),
        ]
