"""Explorers of activations: the curves and their slopes, and a population of units that a bias kills."""

from functools import partial
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.activations import (
    DEAD,
    EXPECTED,
    GELU,
    REACH,
    RELU,
    SIGMOID,
    SWISH,
    ActivationCurvesView,
    Curves,
    DeadUnitsView,
    Units,
)
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import values_of
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import activations
from transformer_parts.maths.activations import (
    dead_probability,
    dead_units,
    fraction_dead,
    largest_difference,
    random_units,
    slope_rms,
    swish_minimum,
    tabulated,
)
from transformer_parts.models.excerpt import load_excerpt

_FUNCTIONS = MappingProxyType(
    {
        "relu": (activations.relu, activations.relu_derivative),
        "gelu": (activations.gelu, activations.gelu_derivative),
        "swish": (activations.swish, activations.swish_derivative),
        "sigmoid": (activations.sigmoid, activations.sigmoid_derivative),
        "gelu_tanh": (activations.gelu_tanh, activations.gelu_tanh_derivative),
    }
)
_CURVES = ("relu", "gelu", "swish", "sigmoid")
_COMPARED = MappingProxyType(
    {"ReLU": "relu", "GELU": "gelu", _("GELU by tanh"): "gelu_tanh", "Swish": "swish", _("sigmoid"): "sigmoid"}
)


class ActivationCurves(Panel[Curves]):
    """ReLU, GELU, Swish and the sigmoid with their slopes at one x, and the difference of any two."""

    alt = _(
        "Three rows over x from −4 to 4. Above, four functions with a mark on each at the chosen x: ReLU (black,"
        " dotted, diamond), GELU (blue, circle), Swish (red, dashed, square), sigmoid (gold, triangle). In the middle"
        " their derivatives. Below, the difference of two functions, with a red ring where it is largest in size."
    )
    primary = ("at", "beta", "first", "second")
    handles = MappingProxyType({"at": Handle(_("x on the curves"), ("at",), "x")})
    _gelus = MappingProxyType({"beta": 1.0, "first": "gelu", "second": "gelu_tanh"})
    _swish = MappingProxyType({"first": "swish", "second": "gelu"})
    presets = MappingProxyType(
        {
            _("The two GELUs at 1"): {**_gelus, "at": 1.0},
            _("… where they differ most"): {**_gelus, "at": 2.699},
            _("Lowest point of SiLU"): {**_swish, "beta": 1.0, "at": -1.2785},
            "β = 1.702": {**_swish, "beta": 1.702, "at": 1.0},
            _("β = 0: a line"): {**_swish, "beta": 0.0, "at": 1.0},
            _("β = 20: nearly ReLU"): {"beta": 20.0, "first": "swish", "second": "relu", "at": -0.1},
        }
    )
    _grid = np.linspace(-REACH, REACH, 401)

    def make_controls(self):
        return {
            "at": controls.real("x", 1.0, -REACH, REACH, step=0.1, form="g", also=[2.699, -2.699, -1.2785]),
            "beta": controls.real(_("β of Swish"), 1.0, 0, 20, step=0.1, form="g", also=[1.702]),
            "first": controls.choice(_("difference: this"), _COMPARED, "gelu"),
            "second": controls.choice(_("minus this"), _COMPARED, "gelu_tanh"),
        }

    def make_view(self):
        return ActivationCurvesView()

    def track(self, handle):
        return self.view.at(self.view.value_axes, values_of(self.controls["at"]), 0)

    def compute(self, *, at, beta, first, second):
        functions = dict(_FUNCTIONS)
        functions["swish"] = tuple(partial(function, beta=beta) for function in _FUNCTIONS["swish"])
        values, slopes = (np.array([functions[name][i](self._grid) for name in _CURVES]) for i in (0, 1))
        values_at, slopes_at = (np.array([functions[name][i](at) for name in _CURVES]) for i in (0, 1))
        one, other = functions[first][0], functions[second][0]
        return Curves(
            grid=self._grid,
            values=values,
            slopes=slopes,
            at=at,
            values_at=values_at,
            slopes_at=slopes_at,
            compared_at=(float(one(at)), float(other(at))),
            difference=one(self._grid) - other(self._grid),
            furthest=largest_difference(one, other, low=-REACH, high=REACH),
            minimum=swish_minimum(beta) if beta > 0 else None,
        )

    def rows(self, data):
        names = ("ReLU", "GELU", "Swish", _("sigmoid"))
        looks = zip(names, (RELU, GELU, SWISH, SIGMOID), data.values_at, data.slopes_at, strict=True)
        minimum = data.minimum
        lowest = _("{value}, at {x}", value=number(minimum.value, 4), x=number(minimum.x, 4)) if minimum else "—"
        x, size = data.furthest
        return [
            Row("x", number(data.at, 4), minor=True),
            *(
                Row(name, _("{value}, slope {slope}", value=number(value), slope=number(slope)), colour, mark=mark)
                for mark, (name, colour, value, slope) in zip(_CURVES, looks, strict=True)
            ),
            Row(_("Swish is lowest"), lowest, SWISH, minor=True),
            Row(_("the two compared, at x"), ", ".join(map(number, data.compared_at)), minor=True),
            Row(_("difference at x"), number(data.difference_at, 7), minor=True, mark="difference"),
            Row(
                _("largest difference, |x| ≤ {reach:g}", reach=REACH),
                _("{value}, at {x}", value=number(size, 7), x=number(x, 3)) if size else _("none"),
                theme.SECOND,
                minor=True,
                mark="furthest",
            ),
        ]


class DeadUnits(Panel[Units]):
    """Units over a data set, random ones or those of the real model, under a bias that moves them all."""

    alt = _(
        "Above, for each unit (every eighth of the real model's) a grey bar from its smallest to its largest"
        " pre-activation over the inputs, in the order of the largest; the units whose bar lies wholly below zero are"
        " on a gold ground, marked with a dagger. In the middle, the root mean square slope of each unit: that of ReLU"
        " (black) ends where the dead units begin, those of SiLU (red, long dashes) and GELU (blue, short dashes) go"
        " on. Below, the fraction of dead units against the bias (black), what probability says of it (red, dashed),"
        " and the present bias (gold diamond)."
    )
    handles = MappingProxyType({"bias": Handle(_("bias on the curve of dead units"), ("bias",), "x")})
    presets = MappingProxyType(
        {
            "b = 0": {"source": "random", "bias": 0.0, "inputs": 256},
            "b = −3": {"source": "random", "bias": -3.0, "inputs": 256},
            _("… one input"): {"source": "random", "bias": -3.0, "inputs": 1},
            _("… 16 inputs"): {"source": "random", "bias": -3.0, "inputs": 16},
            _("… 512 inputs"): {"source": "random", "bias": -3.0, "inputs": 512},
            _("Layer 11 as it is"): {"source": "11", "bias": 0.0, "inputs": 512},
        }
    )
    _inputs = tuple(2**i for i in range(10))
    _biases = np.linspace(-6, 3, 181)

    def make_controls(self):
        excerpt = load_excerpt()
        self._pre = {"random": random_units(192, self._inputs[-1])}
        self._pre |= {str(layer): excerpt.gate(layer) for layer in excerpt.gate_layers}
        # A hundred thousand slopes of GELU take longer than a frame may; beyond ±10 it is 0 or 1.
        self._gelu_derivative = tabulated(activations.gelu_derivative, low=-10, high=10)
        sources = {_("192 random units"): "random"}
        sources |= {
            _("SmolLM2, layer {layer}: x·W of the gate", layer=layer): str(layer) for layer in excerpt.gate_layers
        }
        return {
            "source": controls.choice(_("units"), sources, "random"),
            "bias": controls.real(_("b, added to all"), -3.0, -6, 3, step=0.05),
            "inputs": controls.stops(_("inputs looked at"), 256, self._inputs),
        }

    def make_view(self):
        return DeadUnitsView()

    def track(self, handle):
        biases = values_of(self.controls["bias"])
        unbiased = self._pre[self.state["source"]][: self.state["inputs"]]
        return self.view.at(self.view.count_axes, biases, fraction_dead(unbiased, biases))

    def compute(self, *, source, bias, inputs):
        unbiased = self._pre[source][:inputs]
        pre = unbiased + bias
        order = np.argsort(-pre.max(0), kind="stable")
        slopes = [
            slope_rms(pre, derivative)[order]
            for derivative in (activations.relu_derivative, activations.silu_derivative, self._gelu_derivative)
        ]
        random = source == "random"
        return Units(
            lowest=pre.min(0)[order],
            highest=pre.max(0)[order],
            slopes=np.array(slopes),
            dead=int(dead_units(pre).sum()),
            negative=float((pre <= 0).mean()),
            n_inputs=len(pre),
            bias=bias,
            biases=self._biases,
            fractions=fraction_dead(unbiased, self._biases),
            expected=dead_probability(self._biases, len(pre)) if random else None,
            expected_now=float(dead_probability(bias, len(pre))) if random else None,
        )

    def rows(self, data):
        count = len(data.highest)
        expected = "—" if data.expected_now is None else f"{100 * data.expected_now:.1f} %"
        return [
            Row(_("inputs"), f"{data.n_inputs}", minor=True),
            Row(_("pre-activations z that are not above 0"), f"{number(100 * data.negative, 1)} %", minor=True),
            Row(
                _("dead units: not above 0 at any input"),
                _("{dead} of {count}", dead=data.dead, count=count),
                DEAD,
                mark="dead",
            ),
            Row(_("fraction dead"), f"{number(100 * data.fraction, 1)} %", DEAD, minor=True, mark="dead"),
            Row(_("expected: Φ(−b)ⁿ, n inputs"), expected, EXPECTED, mark="expected"),
            *(
                Row(
                    _("slope of a dead unit, median: {name}", name=name),
                    _median(slope, data.dead),
                    colour,
                    minor=name == "GELU",
                    mark=name.lower(),
                )
                for name, slope, colour in zip(("ReLU", "SiLU", "GELU"), data.slopes, (RELU, SWISH, GELU), strict=True)
            ),
        ]


def _median(slopes: np.ndarray, dead: int) -> str:
    return number(np.median(slopes[-dead:]), 4) if dead else "—"
