"""Explorers of norm placement: one pass forward and backward, the gradient against depth, and short runs."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.norm_placement import (
    CHOSEN,
    COLD,
    COMPARED,
    LOOKS,
    TITLES,
    WARM,
    ByDepth,
    Placed,
    PlacementDepthView,
    PlacementLayersView,
    PlacementRunsView,
    Run,
    TwoPlacements,
    WarmAndCold,
)
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.initialization import standard_draws
from transformer_parts.maths.norm_placement import deepnorm_alpha_beta
from transformer_parts.maths.residual_stream import first_pass, initialized
from transformer_parts.runs import recorded
from transformer_parts.runs.norm_placement import NAME, run_name

NAMES = MappingProxyType({title: placement for placement, title in TITLES.items()})
SCHEMES = MappingProxyType({_("Xavier, as in the paper"): "xavier", _("0.02 and 1/√(2L), as GPT-2"): "gpt2"})
NORMS = MappingProxyType({"LayerNorm": "layer", "RMSNorm": "rms"})


def _name(placement: str) -> str:
    return TITLES[placement]


class PlacementLayers(Panel[TwoPlacements]):
    """Two placements side by side, layer by layer: each frame is a real forward and backward pass."""

    alt = _(
        "Above, the root mean square of the residual stream before the first layer and after each; below, the norm of"
        " the gradient of each layer's last feed-forward matrix. Blue circles, solid: one placement of the norms; red"
        " squares, dashed: another. Both scales are logarithmic."
    )
    primary = ("chosen", "compared", "n_layers", "branch_scale")
    handles = MappingProxyType({"n_layers": Handle(_("number of layers"), ("n_layers",), "x")})
    _paper = MappingProxyType({"n_layers": 8, "d_model": 32, "branch_scale": 1.0, "scheme": "xavier", "norm": "layer"})
    presets = MappingProxyType(
        {
            _("Pre and Post"): {**_paper, "chosen": "pre", "compared": "post"},
            _("Pre and Sandwich, wide branches"): {
                **_paper, "chosen": "pre", "compared": "sandwich", "branch_scale": 4.0,
            },
            _("Post and DeepNorm"): {**_paper, "chosen": "post", "compared": "deepnorm"},
            _("GPT-2's start"): {**_paper, "chosen": "pre", "compared": "post", "scheme": "gpt2"},
        }
    )  # fmt: skip
    widths = (16, 32, 64)
    vocab_size = 64
    deepest = PlacementLayersView.deepest

    def make_controls(self):
        self._draws = {
            width: standard_draws(self._config("sandwich", self.deepest, width, "layer")) for width in self.widths
        }
        return {
            "chosen": controls.choice(_("placement"), NAMES, "pre"),
            "compared": controls.choice(_("beside it"), NAMES, "post"),
            "n_layers": controls.integer(_("layers"), 8, 1, self.deepest),
            "d_model": controls.stops(_("width d"), 32, self.widths),
            "branch_scale": controls.power(_("branches, times"), 1.0, 0.25, 4, form=".2f", also=[0.5, 2, 4]),
            "scheme": controls.choice(_("initial weights"), SCHEMES, "xavier"),
            "norm": controls.choice(_("norm"), NORMS, "layer"),
        }

    def make_view(self):
        return PlacementLayersView()

    def track(self, handle):
        return self.view.at(self.view.below, 1 + np.arange(self.deepest), self.view.below.get_ylim()[0])

    def _config(self, placement: str, n_layers: int, d_model: int, norm: str) -> StackConfig:
        return StackConfig(
            vocab_size=self.vocab_size, n_layers=n_layers, d_model=d_model, n_heads=2, d_ff=2 * d_model, ffn="relu",
            norm=norm, placement=placement, rope_base=None, tied=False,
        )  # fmt: skip

    def compute(self, *, chosen, compared, n_layers, d_model, branch_scale, scheme, norm):
        def placed(placement):
            config = self._config(placement, n_layers, d_model, norm)
            draws = self._draws[d_model]
            weights = initialized(config, scheme=scheme, branch_scale=branch_scale, draws=draws)
            return Placed(placement, first_pass(weights, config))

        first = placed(chosen)
        return TwoPlacements(first, first if compared == chosen else placed(compared))

    def rows(self, data):
        rows = []
        for placed, colour in ((data.chosen, CHOSEN), (data.compared, COMPARED)):
            name, numbers = _name(placed.placement), placed.numbers
            first, last = numbers.ffn_gradient[[0, -1]]
            rows += [
                Row(_("{name}: RMS of the stream, first and last", name=name), _pair(numbers.activation_rms), colour),
                Row(
                    _("{name}: gradient of the first and the last layer", name=name),
                    f"{first:.4f}, {last:.4f}",
                    colour,
                    minor=True,
                ),
                Row(_("{name}: last over first", name=name), number(last / first, 3), colour),
            ]
        n_layers = len(data.chosen.numbers.ffn_gradient)
        factors = deepnorm_alpha_beta(n_layers)
        return [
            *rows,
            Row(
                _("DeepNorm's α and β for {n_layers} layers", n_layers=n_layers),
                f"{factors.alpha:.4f}, {factors.beta:.4f}",
                minor=True,
            ),
        ]


def _pair(values: np.ndarray) -> str:
    return f"{values[0]:.3f}, {values[-1]:.3f}"


class PlacementDepth(Panel[ByDepth]):
    """One number at initialisation against the depth, recorded over eight seeds, for all placements."""

    alt = _(
        "The norm of a gradient at initialisation against the number of layers L, both scales logarithmic: Pre blue"
        " circles, Post red squares dashed, Sandwich gold triangles dotted, DeepNorm black diamonds. Bands show the"
        " range over eight seeds. Thin dotted lines fall as one over the root of L; a vertical line marks the depth"
        " that the table reads."
    )
    handles = MappingProxyType({"depth": Handle(_("depth that is read"), ("depth",), "x")})
    presets = MappingProxyType(
        {
            _("The claim"): {"quantity": "last", "scheme": "xavier", "depth": 32},
            _("Near the input"): {"quantity": "first", "scheme": "xavier", "depth": 32},
            _("Why: the stream"): {"quantity": "activation_rms", "scheme": "xavier", "depth": 32},
            _("GPT-2's start"): {"quantity": "last", "scheme": "gpt2", "depth": 32},
        }
    )

    def make_controls(self):
        recording = recorded.load(NAME)
        self._series = recording.series["depth"]
        self._depths = np.array(recording.arguments["depths"])
        quantities = {
            _("gradient, last layer's FFN"): "last",
            _("gradient, first layer's FFN"): "first",
            _("RMS of the last stream"): "activation_rms",
        }
        return {
            "quantity": controls.choice(_("shown"), quantities, "last"),
            "scheme": controls.choice(_("initial weights"), SCHEMES, "xavier"),
            "depth": controls.stops(_("L, layers"), 32, self._depths.tolist()),
        }

    def make_view(self):
        return PlacementDepthView()

    def compute(self, *, quantity, scheme, depth):
        values = {placement: self._series[scheme][placement][quantity] for placement in NAMES.values()}
        return ByDepth(self._depths, values, self._depths.tolist().index(depth))

    def rows(self, data):
        rows = []
        depth = data.depths[data.marked]
        for placement, colour, *_look in LOOKS:
            mean = data.mean(placement)[data.marked]
            low, high = (f(data.values[placement][:, data.marked]) for f in (np.min, np.max))
            rows.append(
                Row(
                    _("{placement}, mean at L = {depth}", placement=_name(placement), depth=depth),
                    f"{mean:.4f} ({low:.4f} – {high:.4f})",
                    colour,
                    mark=placement,
                )
            )
        return rows + [
            Row(
                _("{placement}: grows as L to the power", placement=_name(placement)),
                f"{data.slope(placement):.3f}",
                colour,
                minor=True,
                mark=placement,
            )
            for placement, colour, *_look in LOOKS
        ]


class PlacementRuns(Panel[WarmAndCold]):
    """A short recorded run of each placement, with warm-up and without; play goes through its steps."""

    alt = _(
        "Above, the loss of a small decoder against the step, with warm-up (blue circles, solid) and without (red"
        " squares, dashed), each seed as a thin line; the grey strip is the warm-up, the dotted line is chance. Below,"
        " at the marked step, the root mean square of the stream and the norm of each layer's gradient, by layer."
    )
    presets = MappingProxyType(
        {_("{name}, 0.01", name=name): {"placement": value, "rate": 1e-2, "step": 30} for name, value in NAMES.items()}
        | {_("Post, 0.003"): {"placement": "post", "rate": 3e-3, "step": 30}}
    )
    play = "step"
    play_interval = 400
    handles = MappingProxyType({"step": Handle(_("step that is read"), ("step",), "x")})

    def make_controls(self):
        recording = recorded.load(NAME)
        self._runs, self._arguments = recording.series["runs"], recording.arguments
        last = self._arguments["plan"]["steps"] - self._arguments["every"]
        rates = {f"{rate:g}": rate for rate in self._arguments["rates"]}
        return {
            "placement": controls.choice(_("placement"), NAMES, "post"),
            "rate": controls.choice(_("learning rate"), rates, 1e-2),
            "step": controls.integer(_("step t"), 30, 0, last, step=self._arguments["every"]),
        }

    def make_view(self):
        return PlacementRunsView()

    def compute(self, *, placement, rate, step):
        cold, warm = self._arguments["warmups"]
        record = step // self._arguments["every"]

        def run(warmup):
            found = self._runs[run_name(placement, rate, warmup)]
            return Run(found["loss"], found["activation_rms"][record], found["gradient"][record])

        chance = float(np.log(self._arguments["run_sizes"]["vocab_size"]))
        return WarmAndCold(run(warm), run(cold), self._arguments["every"], step, warm, chance)

    def rows(self, data):
        rows = [Row(_("chance, ln V"), number(data.chance, 4), minor=True)]
        for name, mark, run, colour in (
            (_("with warm-up"), "warm", data.warm, WARM),
            (_("without"), "cold", data.cold, COLD),
        ):
            losses = ", ".join(f"{loss:.3f}" for loss in run.loss[:, -1])
            rows += [
                Row(_("{name}: loss at the end, each seed", name=name), losses, colour, mark=mark),
                Row(
                    _("{name}: gradient of first and last layer at t = {step}", name=name, step=data.step),
                    _ends(run.gradient),
                    colour,
                    mark=mark,
                ),
                Row(
                    _("{name}: RMS of the last stream at t = {step}", name=name, step=data.step),
                    f"{run.activation_rms[-1]:.3f}",
                    colour,
                    minor=True,
                    mark=mark,
                ),
            ]
        return rows


def _ends(values: np.ndarray) -> str:
    return f"{values[0]:.4f}, {values[-1]:.4f}"
