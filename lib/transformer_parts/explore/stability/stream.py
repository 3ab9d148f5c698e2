"""Explorer of initialisation: the residual stream of a real forward pass, at every depth and standard deviation."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.stability import SCALED, UNSCALED, Depth, StreamDepthView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.initialization import (
    initial_weights,
    narrowed,
    residual_factor,
    standard_deviations,
    standard_draws,
)
from transformer_parts.maths.stability import stream_variance

DEEPEST = 16
_SCHEMES = MappingProxyType({_("N(0, std²)"): "normal", _("Xavier"): "xavier", _("Kaiming (√2)"): "kaiming"})
#: 0.02 at the width of GPT-2 small, 0.02·√768, gives the same product std·√D at D = 64.
LIKE_GPT2 = 0.02 * (768 / 64) ** 0.5


def _config(n_layers: int) -> StackConfig:
    return StackConfig(vocab_size=64, n_layers=n_layers, d_model=64, n_heads=2, d_ff=160, rope_base=None)


class StreamDepth(Panel[Depth]):
    """The variance of the residual stream from branch to branch, with and without GPT-2's factor."""

    alt = _(
        "Two diagrams over the layers of a decoder. Above, on a logarithmic scale, the mean square of the residual"
        " stream before and after each branch: red squares rise with every branch, blue circles, with residual"
        " projections drawn narrower by one over the root of 2L, rise much less; thin dashed lines show what"
        " independent branches would give. Below, the share of each branch in the stream it has joined."
    )
    _start = MappingProxyType({"scheme": "normal", "std": LIKE_GPT2, "seed": 0})
    presets = MappingProxyType(
        {
            _("12 layers, like GPT-2 small"): {**_start, "depth": 12},
            _("16 layers"): {**_start, "depth": 16},
            _("4 layers"): {**_start, "depth": 4},
            _("0.02 at D = 64"): {**_start, "depth": 12, "std": 0.02},
            _("Xavier"): {**_start, "depth": 12, "scheme": "xavier"},
            _("Kaiming"): {**_start, "depth": 12, "scheme": "kaiming"},
        }
    )
    play = "depth"
    play_interval = 200
    primary = ("depth", "scheme", "std")
    guide = MappingProxyType(
        {
            _("12 layers, like GPT-2 small"): _(
                "Drag the last point: the red end moves with the depth, the blue end hardly does."
            ),
        }
    )
    handles = MappingProxyType({"depth": Handle(_("last layer"), ("depth",), "x")})

    def make_controls(self):
        self._draws = standard_draws(_config(DEEPEST), 0)
        return {
            "depth": controls.integer(_("L, layers"), 12, 1, DEEPEST),
            "scheme": controls.choice(_("scheme"), _SCHEMES, "normal"),
            "std": controls.power(_("std"), LIKE_GPT2, 0.01, 1.0, per_decade=10, also=[0.02]),
            "seed": controls.integer(_("seed"), 0, 0, 9),
        }

    def make_view(self):
        return StreamDepthView()

    def compute(self, *, depth, scheme, std, seed):
        config = _config(depth)
        draws = self._draws if seed == 0 else standard_draws(_config(DEEPEST), seed)
        tokens = np.random.default_rng(seed).integers(0, config.vocab_size, 16)
        options = {"scheme": scheme, "std": std}
        plain = initial_weights(config, residual_scaling=False, draws=draws, **options)
        scaled, unscaled = (stream_variance(w, tokens, config) for w in (narrowed(plain, config), plain))
        wide = standard_deviations(config, **options)["layers.0.w_up"]
        return Depth(scaled, unscaled, residual_factor(depth), wide * config.d_model**0.5)

    def rows(self, data):
        first = data.scaled.stream[0]
        grown = [(run.stream[-1], run.stream[-1] / first) for run in (data.scaled, data.unscaled)]
        return [
            Row(_("std · √D of a matrix that reads the stream"), number(data.gain, 4), minor=True),
            Row(_("mean square of the embedding"), number(first), minor=True),
            Row(
                _("after L layers, plain"),
                f"{number(grown[1][0], 4)} ({number(grown[1][1], 1)} ×)",
                UNSCALED,
                mark="unscaled",
            ),
            Row(
                _("after L layers, narrowed"),
                f"{number(grown[0][0], 4)} ({number(grown[0][1], 1)} ×)",
                SCALED,
                mark="scaled",
            ),
            Row("1 / √(2L)", number(data.factor), minor=True),
            Row(_("if branches were independent, plain"), number(data.unscaled.independent[-1], 4), minor=True),
            Row(_("if branches were independent, narrowed"), number(data.scaled.independent[-1], 4), minor=True),
            Row(_("share of the last branch, plain"), _percent(data.unscaled), UNSCALED),
            Row(_("share of the last branch, narrowed"), _percent(data.scaled), SCALED),
        ]


def _percent(run) -> str:
    return f"{number(100 * run.branches[-1] / run.stream[-1], 1)} %"
