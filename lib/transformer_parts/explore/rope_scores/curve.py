"""RoPE's score against the offset, for synthetic content."""

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import envelope, window_of
from transformer_parts.draw.rope_scores import ScoreCurveView, SyntheticCurve
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import attention, rope, rope_scores

# Columns of the picture, and up to how many offsets the line is drawn between whole offsets too.
COLUMNS = 340
FEW_OFFSETS = 160

_EQUAL = MappingProxyType(
    {"content": "ones", "head_dim": 128, "rope_base": 1e4, "similarity": 1.0, "span": 4096, "offset": 1707, "shift": 0}
)


class RopeScores(Panel[SyntheticCurve]):
    """The curve of one query and one key over the offset between them, and what each pair of channels adds."""

    alt = _(
        "Above: the score against the offset n - m, the chosen offset marked, with the mean and spread of random"
        " content as a band. Below: one row for each pair of channels, fastest on top, red where it adds to the score"
        " and blue where it takes away; fast pairs alternate, slow ones keep their colour far out."
    )
    handles = MappingProxyType(
        {
            "offset": Handle(_("offset between query and key"), ("offset",), "x"),
        }
    )
    primary = ("content", "offset", "shift", "span")
    presets = MappingProxyType(
        {
            _("By hand: m=1, n=3"): {
                "content": "hand",
                "head_dim": 4,
                "rope_base": 1e4,
                "span": 64,
                "offset": 2,
                "shift": 1,
                "bound": False,
            },
            _("q = k: not monotone"): {**_EQUAL, "bound": False},
            _("Random: nothing decays"): {
                **_EQUAL,
                "content": "random",
                "similarity": 0.0,
                "span": 131072,
                "offset": -100_000,
                "bound": False,
            },
            _("RoFormer's bound"): {**_EQUAL, "bound": True},
            _("q = k, base 500,000"): {**_EQUAL, "rope_base": 5e5, "bound": False},
        }
    )
    play = "offset"
    hand = ((1.0, 2.0, 3.0, 4.0), (2.0, 1.0, 0.0, 1.0))

    def make_controls(self):
        contents = {"q = (1, …, 1)": "ones", _("q random"): "random", _("by hand, head_dim 4"): "hand"}
        spans = {"±64": 64, "±512": 512, "±4,096": 4096, "±131,072": 131072}
        return {
            "content": controls.choice(_("content"), contents, "ones"),
            "similarity": controls.real(_("k like q"), 1.0, -1, 1, step=0.05),
            "seed": controls.integer(_("seed of the draw"), 0, 0, 99),
            "head_dim": controls.integer("head_dim", 128, 2, 256, step=2),
            "rope_base": controls.power(_("base"), 1e4, 10, 1e7, form=",.0f", also=[5e5]),
            "span": controls.choice(_("offsets shown"), spans, 4096),
            "offset": controls.integer(_("offset n − m"), 1707, -4096, 4096),
            "shift": controls.integer(_("move both by"), 0, 0, 8192),
            "bound": controls.switch(_("RoFormer's bound, in scale")),
        }

    def make_view(self):
        return ScoreCurveView()

    def couple(self, name):
        content, head_dim = self.controls["content"], self.controls["head_dim"]
        if name == "content" and content.value == "hand":
            head_dim.value = 4
        if name in ("similarity", "seed") or (name == "head_dim" and head_dim.value != 4):
            content.value = "random" if content.value == "hand" else content.value
        if name == "span":
            offset, span = self.controls["offset"], self.controls["span"].value
            offset.min, offset.max = -span, span

    def compute(self, *, content, similarity, seed, head_dim, rope_base, span, offset, shift, bound):
        query, key = self._content(content, head_dim, similarity, seed)
        inv_freq = rope.inv_freq(head_dim, rope_base)
        offsets = np.arange(-span, span + 1)
        curve = curve_of(query, key, offsets, inv_freq, offset=offset, shift=shift)
        scores = curve.pop("scores")
        if len(offsets) <= FEW_OFFSETS:
            curve |= {"dot_offsets": offsets, "dots": scores}
        here = None, None
        if content == "random":
            at, window = curve["wave_offsets"], window_of(len(offsets), COLUMNS)
            mean, deviation = rope_scores.random_scores(at, inv_freq, similarity=similarity, window=window)
            curve |= {"band_offsets": at, "mean": mean, "deviation": deviation}
            here = (x.item() for x in rope_scores.random_scores([offset], inv_freq, similarity=similarity))
        mean_here, deviation_here = here
        if bound:
            # Offset 0, where the bound has its narrow peak, is not the middle of its column.
            at = np.union1d(np.rint(curve["envelope"].middles), [0])
            curve |= {"bound_offsets": at, "bound": rope_scores.decay_bound(query, key, at, inv_freq)}
        return SyntheticCurve(
            **curve,
            inner_product=_turned(query, key, curve["positions"], inv_freq, scale=1.0),
            counts=rope_scores.distance_counts(scores),
            mean_here=mean_here,
            deviation_here=deviation_here,
            bound_here=rope_scores.decay_bound(query, key, [offset], inv_freq).item(),
        )

    def _content(self, content: str, head_dim: int, similarity: float, seed: int) -> tuple[NDArray, NDArray]:
        if content == "hand":
            return tuple(map(np.array, self.hand))
        query, other = np.random.default_rng(seed).standard_normal((2, head_dim))
        if content == "ones":
            query = np.ones(head_dim)
        return query, rope_scores.similar_key(query, other, similarity)

    def rows(self, data):
        counts = data.counts
        rows = [
            *rows_of(data),
            Row(_("inner product, before the division by √head_dim"), number(data.inner_product)),
            Row(
                _("negative at"),
                _("{some:,} of {all:,} offsets, {percent:.2f} %", **_share(counts.negative, counts.offsets)),
            ),
            Row(
                _("one step further away raises it at"),
                _("{some:,} of {all:,} steps, {percent:.2f} %", **_share(counts.rising, counts.steps)),
            ),
        ]
        if data.mean_here is not None:
            spread = f"{number(data.mean_here, 4)} ± {number(data.deviation_here, 4)}"
            rows.append(Row(_("random content here: mean ± spread"), spread, theme.QUERY))
        return [
            *rows,
            Row(_("RoFormer's bound here"), number(data.bound_here, 4), theme.KEY),
            Row(_("no score can exceed, at any offset"), number(data.largest, 4)),
        ]


def curve_of(
    query: NDArray, key: NDArray, offsets: NDArray, inv_freq: NDArray, *, offset: int, shift: int
) -> dict[str, object]:
    """Return the fields of a `ScoreCurve` that every content has, and the ``scores`` at the whole offsets."""
    window = window_of(len(offsets), COLUMNS)
    scores = rope.scores_by_offset(query, key, offsets, inv_freq=inv_freq)
    columns = envelope(offsets[0], scores, window)
    wave_offsets, wave = columns.middles, columns.mean
    if len(offsets) <= FEW_OFFSETS:
        wave_offsets = np.linspace(offsets[0], offsets[-1], 10 * (len(offsets) - 1) + 1)
        wave = rope.scores_by_offset(query, key, wave_offsets, inv_freq=inv_freq)
    amplitudes = len(query) ** -0.5 * rope_scores.pair_waves(query, key).amplitude
    # Where a column is several offsets wide the mean is over two columns: over one, waves as long as a column still
    # show, as beats that are not there.
    mean_over = 1 if window == 1 else 2 * window
    # Neither position is negative; the earlier of the two is `shift`.
    positions = (shift + max(0, -offset), shift + max(0, offset))
    return {
        "scores": scores,
        "envelope": columns,
        "wave_offsets": wave_offsets,
        "wave": wave,
        "pairs": rope_scores.pair_scores(query, key, columns.middles, inv_freq, window=mean_over),
        "largest_pair": amplitudes.max(),
        "largest": amplitudes.sum(),
        "offset": offset,
        "score": scores[offset - offsets[0]].item(),
        "positions": positions,
        "turned_score": _turned(query, key, positions, inv_freq),
    }


def rows_of(data) -> list[Row]:
    """Return the lines of the table that every content has."""
    m, n = data.positions
    return [
        Row(_("positions m of the query, n of the key"), f"{m:,}, {n:,}"),
        Row(_("score on the curve, at offset {offset:,}", offset=data.offset), number(data.score), theme.THIRD),
        Row(_("score from turning q by m and k by n"), number(data.turned_score)),
    ]


def _turned(query: NDArray, key: NDArray, positions: tuple[int, int], inv_freq: NDArray, scale=None) -> float:
    turned = rope.rotate(np.stack([query, key]), positions, inv_freq=inv_freq)
    return attention.scores(turned[None, :1], turned[None, 1:], scale=scale).item()


def _share(some: int, every: int) -> dict[str, float]:
    return {"some": some, "all": every, "percent": 100 * some / every}
