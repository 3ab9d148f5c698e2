"""A live run of context extension: train a small decoder, then evaluate it beyond its length."""

from collections.abc import Generator, Sequence

import numpy as np

from transformer_parts.draw.long_context_live import LOOKS, Extension, LiveExtensionView
from transformer_parts.explore import controls
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.long_context.loss import NAMES
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _, join
from transformer_parts.runs import long_context_small as small
from transformer_parts.runs import recorded

#: A step of training gives step and loss; a trial gives method, place of its length, and accuracy.
Trained = tuple[int, float]
Tried = tuple[str, int, float]


class LiveExtension(LiveRun[Trained | Tried, Extension]):
    """The recorded decoder of a seed, trained and tried now."""

    alt = _(
        "Left: the loss of a small decoder over the steps of its training, with that of guessing dotted. Right: the"
        " share of tokens it repeats rightly at the trained length and beyond; black diamonds as trained, gold"
        " triangles Position Interpolation, red squares NTK-aware, blue dots YaRN; hollow and dotted, the recorded run."
    )

    def make_controls(self):
        self._recording = recorded.load(small.NAME)
        return {"seed": controls.integer(_("seed"), 0, 0, max(small.SEEDS))}

    def make_view(self):
        return LiveExtensionView()

    def steps(self, **state):
        return small.STEPS + len(LOOKS) * len(small.LENGTHS)

    def run(self, *, seed) -> Generator[Trained | Tried]:
        like, weights = small.config(), None
        for step, loss, weights in small.trained(seed):  # noqa: B007  the last weights are tried below
            yield step, loss
        for name in LOOKS:
            for place, length in enumerate(small.LENGTHS):
                scaled = small.scaled_rope(name, length, like)
                yield name, place, small.tried(*small.extended(weights, like, scaled), length, seed).accuracy

    def data(self, records: Sequence[Trained | Tried], earlier: Sequence[Trained | Tried], *, seed) -> Extension:
        training = [record for record in records if len(record) == 2]
        accuracy = {name: np.full(len(small.LENGTHS), np.nan) for name in LOOKS}
        for name, place, value in (record for record in records if len(record) == 3):
            accuracy[name][place] = value
        then = self._recording.series[f"seed {seed}"]
        return Extension(
            steps=np.array([step for step, _loss in training], dtype=float),
            losses=np.array([loss for _step, loss in training], dtype=float),
            last=small.STEPS,
            lengths=small.LENGTHS,
            accuracy=accuracy,
            recorded={name: then[name]["accuracy"] for name in LOOKS},
        )

    def rows(self, data):
        loss = number(data.losses[-20:].mean(), 3) if len(data.losses) else "—"
        lengths = ", ".join(map(str, data.lengths))
        rows = [
            Row(_("loss, mean of the last 20 steps"), loss),
            Row(_("repeated rightly at {lengths} tokens, in per cent", lengths=lengths), ""),
        ]
        for name, (colour, _marker, _line) in LOOKS.items():
            shown = data.accuracy[name] if np.isfinite(data.accuracy[name]).any() else data.recorded[name]
            when = _("now") if shown is data.accuracy[name] else _("recorded")
            values = ", ".join("—" if np.isnan(value) else f"{100 * value:.0f}" for value in shown)
            rows.append(Row(join(", ", [NAMES[name], when]), values, colour))
        return rows
