"""RoPE with the hand on it: one plane with a query and a key, and all pairs of a head as clocks."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.rope import Clocks, Plane, RopeClocksView, RopePlaneView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import values_of
from transformer_parts.explore.readout import Row, Term, number, vector
from transformer_parts.language import _
from transformer_parts.maths import attention, rope, rope_scores

_WORKED = MappingProxyType(
    {
        "theta": np.pi / 2,
        "query_length": 5**0.5,
        "query_direction": float(np.degrees(np.arctan2(2, 1))),
        "key_length": 5**0.5,
        "key_direction": float(np.degrees(np.arctan2(1, 2))),
    }
)


class RopePlane(Panel[Plane]):
    """One pair of channels: query and key as arrows, each turned by its own position."""

    alt = _(
        "Left: the plane of one pair of channels, with query and key as dotted arrows before and solid arrows after"
        " their rotations. Right: the score against the offset n - m, the present offset marked."
    )
    presets = MappingProxyType(
        {
            _("By hand: m=1, n=2"): {**_WORKED, "m": 1, "n": 2, "shift": 0},
            _("Same gap: m=4, n=5"): {**_WORKED, "m": 4, "n": 5, "shift": 0},
            _("Same gap, other content"): {**_WORKED, "m": 1, "n": 2, "shift": 0, "key_direction": 180.0},
        }
    )
    play = "shift"
    primary = ("m", "n", "shift", "theta")
    handles = MappingProxyType(
        {
            "query": Handle(_("tip of the query"), ("query_direction", "query_length")),
            "key": Handle(_("tip of the key"), ("key_direction", "key_length")),
            "offset": Handle(_("offset on the score curve"), ("n",), "x"),
        }
    )
    offsets = np.arange(-16.0, 17.0)
    wave_offsets = np.linspace(-16, 16, 32 * 24 + 1)

    def make_controls(self):
        return {
            "m": controls.integer(_("m, query at"), 1, 0, 16),
            "n": controls.integer(_("n, key at"), 4, 0, 16),
            "shift": controls.integer(_("move both by"), 0, 0, 64),
            "theta": controls.real(_("θ, rad per step"), 0.4, 0, 3.14, step=0.02, form=".3f", also=[np.pi / 2, np.pi]),
            "query_length": controls.real("|q|", _WORKED["query_length"], 0, 2.5, step=0.05),
            "query_direction": controls.real(
                _("∠q, degrees"), _WORKED["query_direction"], -180, 180, step=2, form=".1f"
            ),
            "key_length": controls.real("|k|", _WORKED["key_length"], 0, 2.5, step=0.05),
            "key_direction": controls.real(_("∠k, degrees"), _WORKED["key_direction"], -180, 180, step=2, form=".1f"),
        }

    def make_view(self):
        return RopePlaneView()

    def compute(self, *, m, n, shift, theta, query_length, query_direction, key_length, key_direction):
        query = rope.from_polar(query_length, np.radians(query_direction))
        key = rope.from_polar(key_length, np.radians(key_direction))
        positions = [m + shift, n + shift]
        turned = rope.rotate(np.stack([query, key]), positions, inv_freq=[theta])
        query_angle, key_angle = rope.angles(positions, [theta])[:, 0]
        return Plane(
            query=query,
            key=key,
            turned_query=turned[0],
            turned_key=turned[1],
            query_angle=query_angle,
            key_angle=key_angle,
            offsets=self.offsets,
            scores=rope.scores_by_offset(query, key, self.offsets, inv_freq=[theta]),
            wave_offsets=self.wave_offsets,
            wave=rope.scores_by_offset(query, key, self.wave_offsets, inv_freq=[theta]),
            offset=n - m,
            score=attention.scores(turned[None, :1], turned[None, 1:]).item(),
        )

    def track(self, handle):
        if handle == "offset":
            return None
        state, which = self.state, handle
        names = (f"{which}_direction", f"{which}_length")
        directions, lengths = (values_of(self.controls[name]) for name in names)
        angle = (state["m" if which == "query" else "n"] + state["shift"]) * state["theta"]
        angles = np.radians(directions)[:, None] + angle
        return self.view.at(self.view.plane, lengths * np.cos(angles), lengths * np.sin(angles))

    def rows(self, data):
        before = _inner_product(data.query, data.key)
        after = _inner_product(data.turned_query, data.turned_key)
        lengths = f"{number(np.linalg.norm(data.turned_query))}, {number(np.linalg.norm(data.turned_key))}"
        return [
            Row(_("query turned, R(mθ)q"), vector(data.turned_query), theme.QUERY, mark="query"),
            Row(_("key turned, R(nθ)k"), vector(data.turned_key), theme.KEY, mark="key"),
            Row(_("their lengths, as before the turn"), lengths, minor=True),
            Row(_("inner product before the turn"), number(before), minor=True),
            Row(_("inner product after it"), number(after)),
            Row(_("score: inner product / √2"), number(data.score), theme.THIRD, mark="score"),
        ]

    def formula(self, data):
        lengths = [np.linalg.norm(vector) for vector in (data.query, data.key)]
        apart = np.degrees(np.arctan2(*reversed(data.turned_key)) - np.arctan2(*reversed(data.turned_query)))
        return [
            Term("s", theme.THIRD, "score"),
            Term(" = "),
            Term("|q|", theme.QUERY, "query"),
            Term(" "),
            Term("|k|", theme.KEY, "key"),
            Term(" cos(∠k − ∠q) / √2 = "),
            Term(number(lengths[0]), theme.QUERY, "query"),
            Term(" · "),
            Term(number(lengths[1]), theme.KEY, "key"),
            Term(f" · cos({number((apart + 180) % 360 - 180, 1)}°) / √2 = "),
            Term(number(data.score), theme.THIRD, "score"),
        ]


class RopeClocks(Panel[Clocks]):
    """All pairs of a head: each pair is a clock of its own speed, one hand for the query and one for the key."""

    alt = _(
        "A clock face for each pair of channels, fastest first. The long thin hand is the query's angle, the short"
        " thick one the key's; a face is gold where they agree and grey where they oppose."
    )
    untouchable = "A hand turns round within a few positions, so one place of it stands for many positions."
    primary = ("m", "n", "shift", "head_dim")
    presets = MappingProxyType(
        {
            _("By hand: head_dim 4"): {"head_dim": 4, "rope_base": 10000.0, "m": 1, "n": 3, "shift": 0},
            _("head_dim 128"): {"head_dim": 128, "rope_base": 10000.0, "m": 5, "n": 8, "shift": 0},
            _("Far apart"): {"head_dim": 128, "rope_base": 10000.0, "m": 0, "n": 512, "shift": 0},
        }
    )
    play = "shift"

    def make_controls(self):
        return {
            "m": controls.integer(_("m, query at"), 5, 0, 512),
            "n": controls.integer(_("n, key at"), 8, 0, 512),
            "shift": controls.integer(_("move both by"), 0, 0, 512),
            "head_dim": controls.integer("head_dim", 128, 2, 256, step=2),
            "rope_base": controls.power(_("base"), 10000.0, 10, 1e7, form=",.0f", also=[5e5]),
        }

    def make_view(self):
        return RopeClocksView()

    def compute(self, *, m, n, shift, head_dim, rope_base):
        inv_freq = rope.inv_freq(head_dim, rope_base)
        query_angles, key_angles = rope.angles([m + shift, n + shift], inv_freq)
        # Two unit hands that point the same way at position 0: each pair adds cos((n - m)·θ).
        hand = np.tile([1.0, 0.0], head_dim // 2)
        alignment = rope_scores.pair_scores(hand, hand, [n - m], inv_freq, scale=1.0)[:, 0]
        return Clocks(query_angles=query_angles, key_angles=key_angles, alignment=alignment, inv_freq=inv_freq)

    def rows(self, data):
        turns = rope.wavelengths(data.inv_freq)
        return [
            Row(_("fastest pair, θ₀ in rad per position"), number(data.inv_freq[0])),
            Row(_("slowest pair, θ in rad per position"), number(data.inv_freq[-1], 8)),
            Row(_("positions for a whole turn, fastest"), number(turns[0], 2)),
            Row(_("positions for a whole turn, slowest"), number(turns[-1], 2)),
            Row(
                _("turned apart by (n − m)·θ, fastest pair"),
                _("{angle} rad", angle=number(data.key_angles[0] - data.query_angles[0])),
            ),
            Row(_("mean of cos((n − m)·θ) over the pairs"), number(data.alignment.mean()), theme.THIRD),
        ]


def _inner_product(query: np.ndarray, key: np.ndarray) -> float:
    return attention.scores(query[None, None], key[None, None], scale=1.0).item()
