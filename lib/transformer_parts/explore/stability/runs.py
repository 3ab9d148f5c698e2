"""Explorer of recorded training runs, with and without each measure of stability."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.stability import LEFT, TAKEN, Curve, NamedRunsView, Runs
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _, join
from transformer_parts.runs import recorded, stability
from transformer_parts.runs.stability import COMPARISONS


class Quantity(NamedTuple):
    """One quantity that is watched."""

    label: str  # in words
    symbol: str  # in mathtext
    logarithmic: bool  # whether its scale is


QUANTITIES = MappingProxyType(
    {
        "gradient_norm": Quantity(_("gradient norm, largest of 4 steps"), r"$\Vert g\Vert$", True),
        "activation_rms": Quantity(_("RMS of the last stream"), r"$\mathrm{RMS}(x_L)$", True),
        "largest_logit": Quantity(_("largest attention logit"), r"$\max|z|$", True),
        "entropy": Quantity(_("attention entropy, mean"), "$H$", False),
        "quantiles": Quantity(_("held-out loss, 10–50–90 %"), r"$\mathcal{L}_{10,50,90\,\%}$", False),
    }
)

#: The measures of `COMPARISONS` in words.
#: The measures that are compared with and without, in words.
MEASURES = MappingProxyType(
    {
        "init": _("initial weights of std 0.18, not 1"),
        "narrowing": _("residual projections × 1/√(2L)"),
        "warm-up": _("warm-up (post-norm)"),
        "clipping": _("clipping to norm 1 (SGD)"),
        "clipping, AdamW": _("clipping to norm 1 (AdamW)"),
        "QK-norm": _("QK-norm"),
        "float32": _("weights kept in float32, not bfloat16"),
    }
)


def curve(series, quantity: str, every: int) -> Curve:
    """Return what is drawn of one run's series."""
    steps, watched = every * (1 + np.arange(len(series["loss"]))), series[quantity]
    if quantity != "quantiles":
        return Curve(steps, series["loss"], watched)
    if not len(steps):
        watched = np.empty((0, 3))
    return Curve(steps, series["loss"], watched[:, 1], (watched[:, 0], watched[:, 2]))


def limits(curves: Sequence[Curve], logarithmic: bool) -> tuple[float, float]:
    """Return limits in coarse steps that hold the curves; beyond a million they are cut."""
    parts = [part for c in curves for part in (c.watched, *(c.band or ()))]
    values = np.concatenate([*parts, [1.0] if logarithmic else []])
    values = values[np.isfinite(values)]
    if logarithmic:
        low, high = (np.log10(np.clip(value, 1e-4, 1e6)) for value in (values.min(), values.max()))
        return float(10 ** np.floor(low)), float(10 ** np.ceil(high + 1e-9))
    return 0.0, 1.05 * theme.step_above(min(float(values.max()), 10.0))


def highest_loss(curves: Sequence[Curve]) -> float:
    """Return the end of the loss's axis: of a run that diverged only the beginning is shown."""
    return float(np.clip(theme.step_above(max(float(c.loss.max(initial=0)) for c in curves)), 3, 10)) * 1.03


class RecordedRuns(Panel[Runs]):
    """The loss and one more quantity of recorded runs, with a measure and without it."""

    alt = _(
        "Two diagrams over the steps of training, blue with the chosen measure and red without it, the chosen seed"
        " thick, the others thin. Above, the loss, with that of a guess dotted. Below, the chosen quantity; of the"
        " held-out loss the median in a band from the 10th to the 90th percentile. A vertical line stands at the step"
        " of the table."
    )
    presets = MappingProxyType(
        {
            _("Initial std"): {"measure": "init", "quantity": "activation_rms"},
            "1/√(2L)": {"measure": "narrowing", "quantity": "activation_rms"},
            _("Warm-up"): {"measure": "warm-up", "quantity": "gradient_norm"},
            _("Clipping, SGD"): {"measure": "clipping", "quantity": "gradient_norm"},
            _("Clipping, AdamW"): {"measure": "clipping, AdamW", "quantity": "gradient_norm"},
            _("QK-norm"): {"measure": "QK-norm", "quantity": "largest_logit"},
            _("bfloat16 weights"): {"measure": "float32", "quantity": "quantiles"},
        }
    )
    play = "step"
    play_interval = 80
    primary = ("measure", "quantity", "step", "seed")
    handles = MappingProxyType({"step": Handle(_("line of the step"), ("step",), "x")})

    def make_controls(self):
        self._recording = recorded.load(stability.NAME)
        of = self._recording.arguments
        return {
            "measure": controls.choice(_("with / without"), {MEASURES[name]: name for name in COMPARISONS}, "QK-norm"),
            "quantity": controls.choice(
                _("below"), {quantity.label: name for name, quantity in QUANTITIES.items()}, "largest_logit"
            ),
            "seed": controls.integer(_("seed"), 0, min(of["seeds"]), max(of["seeds"])),
            "step": controls.integer(_("t, step"), of["steps"], of["every"], of["steps"], step=of["every"]),
        }

    def make_view(self):
        return NamedRunsView()

    def compute(self, *, measure, quantity, seed, step):
        of = self._recording.arguments
        seeds = [seed, *(other for other in of["seeds"] if other != seed)]
        taken, left = (
            tuple(curve(stability.arm_series(self._recording, measure, kind, s), quantity, of["every"]) for s in seeds)
            for kind in ("taken", "left")
        )
        clipped = COMPARISONS[measure].taken.max_norm if quantity == "gradient_norm" else None
        return Runs(
            taken=taken,
            left=left,
            guess=float(np.log(of["task"]["vocab_size"])),
            last=of["steps"],
            symbol=QUANTITIES[quantity].symbol,
            logarithmic=QUANTITIES[quantity].logarithmic,
            limits=limits(taken + left, QUANTITIES[quantity].logarithmic),
            highest_loss=highest_loss(taken + left),
            place=step,
            line=clipped,
            words=QUANTITIES[quantity].label,
        )

    def rows(self, data):
        rows = []
        for words, runs, colour, mark in (
            (_("with"), data.taken, TAKEN, "taken"),
            (_("without"), data.left, LEFT, "left"),
        ):
            at = int(np.searchsorted(runs[0].steps, data.place))
            here = at < len(runs[0].steps)
            rows += [
                Row(
                    _("loss, {words}", words=words),
                    _value(runs[0].loss[at]) if here else _("run ended"),
                    colour,
                    mark=mark,
                ),
                Row(
                    join(", ", [data.words, words]),
                    _value(runs[0].watched[at]) if here else _("run ended"),
                    colour,
                    mark=mark,
                ),
            ]
        for words, runs, colour in ((_("with"), data.taken, TAKEN), (_("without"), data.left, LEFT)):
            ends = ", ".join(_value(run.loss[-5:].mean()) for run in runs)
            rows.append(Row(_("loss of the last 20 steps, each seed, {words}", words=words), ends, colour, minor=True))
        return rows


def _value(value: float) -> str:
    return number(value, 3) if abs(value) < 1e4 else f"{value:.2e}"
