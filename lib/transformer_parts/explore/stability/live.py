"""A live run that trains a small decoder, with every measure of stability as a switch."""

from collections.abc import Sequence

import numpy as np

from transformer_parts.draw.stability import LEFT, TAKEN, Curve, Runs, RunsView
from transformer_parts.explore import controls
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.readout import Row, number
from transformer_parts.explore.stability.runs import QUANTITIES, curve, highest_loss, limits
from transformer_parts.language import _
from transformer_parts.runs import recorded, stability
from transformer_parts.runs.stability import Arm, Task


class LiveTraining(LiveRun[stability.Watched, Runs]):
    """The decoder of the recorded runs, trained now."""

    alt = _(
        "Two diagrams over the steps of training: above the loss, with that of a guess dotted; below the gradient norm"
        " before clipping on a logarithmic scale, with the norm 1 dashed. Blue is the run that you start, red the one"
        " before it; at first a recorded one."
    )
    why_early = _(", its numbers no longer finite,")

    def make_controls(self):
        recording = recorded.load(stability.NAME)
        series = stability.arm_series(recording, "init", "taken", 0)
        self._recorded = curve(series, "gradient_norm", recording.arguments["every"])
        return {
            "placement": controls.choice(_("norms"), {_("pre"): "pre", _("post"): "post"}, "pre"),
            "optimizer": controls.choice(_("optimizer"), {"AdamW": "adamw", _("SGD, momentum 0.9"): "sgd"}, "adamw"),
            "peak": controls.power(_("learning rate"), 0.01, 1e-3, 1.0, per_decade=4, also=[0.02, 0.03, 0.3]),
            "std": controls.power(_("std of weights"), 0.18, 0.02, 2.0, per_decade=4),
            "warmup": controls.switch(_("warm-up, 20 steps (AdamW)"), True),
            "clip": controls.switch(_("clip gradients to norm 1"), True),
            "qk_norm": controls.switch(_("QK-norm")),
            "scaling": controls.switch(_("residual projections × 1/√(2L)"), True),
            "seed": controls.integer(_("seed"), 0, 0, 9),
        }

    def make_view(self):
        return RunsView()

    def steps(self, **state):
        return stability.STEPS

    def run(self, *, placement, optimizer, peak, std, warmup, clip, qk_norm, scaling, seed):
        arm = Arm(
            peak=peak,
            warmup_steps=20 if warmup else 0,
            max_norm=1.0 if clip else None,
            std=std,
            residual_scaling=scaling,
            placement=placement,
            qk_norm=qk_norm,
            optimizer=optimizer,
        )
        return stability.run(arm, seed, every=1)

    def data(self, records: Sequence[stability.Watched], earlier: Sequence[stability.Watched], **state) -> Runs:
        taken = (_drawn(records),) if records else ()
        left = (_drawn(earlier) if earlier else self._recorded,)
        quantity = QUANTITIES["gradient_norm"]
        return Runs(
            taken=taken,
            left=left,
            guess=float(np.log(Task().vocab_size)),
            last=stability.STEPS,
            symbol=quantity.symbol,
            logarithmic=quantity.logarithmic,
            limits=limits(taken + left, quantity.logarithmic),
            highest_loss=highest_loss(taken + left),
            line=1.0,
        )

    def rows(self, data):
        rows = []
        for which, runs, colour in ((_("this run"), data.taken, TAKEN), (_("the run before"), data.left, LEFT)):
            if not runs:
                rows.append(Row(_("loss, mean of the last 20 steps, {run}", run=which), "—", colour))
                continue
            (run,) = runs
            recent = run.loss[run.steps > run.steps[-1] - 20]
            rows.append(Row(_("loss, mean of the last 20 steps, {run}", run=which), number(recent.mean(), 3), colour))
            rows.append(Row(_("largest gradient norm, {run}", run=which), number(run.watched.max(), 3), colour))
        return rows


def _drawn(records: Sequence[stability.Watched]) -> Curve:
    """Return the curve as the recorded ones are: of so many steps the mean loss and the largest gradient norm."""
    every = stability.EVERY
    groups = [records[i : i + every] for i in range(0, len(records), every)]
    return Curve(
        steps=np.array([min(every * (i + 1), len(records)) for i in range(len(groups))]),
        loss=np.array([np.mean([step.loss for step in group]) for group in groups]),
        watched=np.array([max(step.gradient_norm for step in group) for group in groups]),
    )
