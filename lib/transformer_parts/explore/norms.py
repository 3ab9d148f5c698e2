"""Explorers of RMSNorm and LayerNorm: a few channels, three channels in space, a real residual vector."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.norms import (
    DIFFERENCE,
    LAYER_NORM,
    RMS_NORM,
    Channels,
    NormBarsView,
    NormResidualView,
    NormSphereView,
    Pair,
    Space,
)
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import values_of
from transformer_parts.explore.readout import Row, Term, number, vector
from transformer_parts.language import _
from transformer_parts.maths.norms import angle, center, layer_norm, moments, rms_norm
from transformer_parts.models.excerpt import load_excerpt

#: Too small beside squares of about 1 to change a shown digit.
_NO_EPS = 1e-12


def _pair(x: np.ndarray, eps: float, weight: np.ndarray | None = None, bias: np.ndarray | None = None) -> Pair:
    rms, layer = rms_norm(x, weight, eps), layer_norm(x, weight, bias, eps)
    return Pair(x=x, rms_norm=rms, layer_norm=layer, moments=moments(x), angle=float(angle(rms, layer)))


def _moment_rows(pair: Pair) -> list[Row]:
    mean, rms, std = pair.moments
    return [
        Row(_("mean μ"), number(mean), LAYER_NORM, minor=True, mark="mean"),
        Row(_("RMS"), number(rms), RMS_NORM, minor=True),
        Row(_("standard deviation σ, with 1/D"), number(std), minor=True),
        Row(_("|μ| / RMS"), _or_dash(pair.moments.mean_over_rms, "")),
    ]


def _or_dash(value: float, unit: str, digits: int = 6) -> str:
    return "—" if np.isnan(value) else number(value, digits) + unit


def _difference_row(pair: Pair) -> Row:
    largest = number(np.abs(pair.difference).max())
    return Row(_("largest difference of the outputs"), largest, DIFFERENCE, minor=True, mark="difference")


class NormBars(Panel[Pair]):
    """Two to four channels, each with its own slider, and what both norms make of them."""

    alt = _(
        "Above, a vector as grey bars with its mean (dashed) and its RMS (dotted) as levels. Below, for each channel"
        " three bars: RMSNorm's output (blue, circle), LayerNorm's output (red, square) and their difference (gold,"
        " diamond)."
    )
    primary = ("scale", "shift", "eps", "d")
    handles = MappingProxyType(
        {f"x{i}": Handle(_("top of bar {number}", number=i), (f"x{i}",), "y") for i in (1, 2, 3, 4)}
    )
    _plain = MappingProxyType({"shift": 0.0, "scale": 1.0, "eps": _NO_EPS, "gamma": 1.0, "beta": 0.0})
    _tiny = MappingProxyType({**_plain, "d": 4, "x1": 1.0, "x2": -1.0, "x3": 1.0, "x4": -1.0, "scale": 1e-3})
    presets = MappingProxyType(
        {
            _("By hand: (1, 3)"): {**_plain, "d": 2, "x1": 1.0, "x2": 3.0},
            "x + 1": {**_plain, "d": 2, "x1": 1.0, "x2": 3.0, "shift": 1.0},
            "(1, 0, 0, 0)": {**_plain, "d": 4, "x1": 1.0, "x2": 0.0, "x3": 0.0, "x4": 0.0},
            "σ = 0.001, ε = 1e-5": {**_tiny, "eps": 1e-5},
            "σ = 0.001, ε = 1e-6": {**_tiny, "eps": 1e-6},
            "σ = 0.001, ε = 1e-8": {**_tiny, "eps": 1e-8},
        }
    )

    def make_controls(self):
        made = {"d": controls.integer(_("D, channels"), 2, 2, 4)}
        for name, value in (("x1", 1.0), ("x2", 3.0), ("x3", -1.0), ("x4", 0.5)):
            made[name] = controls.real(f"x{'₁₂₃₄'[int(name[1]) - 1]}", value, -4, 4, step=0.1, form=".1f")
        made |= {
            "scale": controls.power(_("times"), 1.0, 1e-3, 1e3, per_decade=5),
            "shift": controls.real(_("plus"), 0.0, -5, 5, step=0.1, form=".1f"),
            "eps": controls.power("ε", _NO_EPS, 1e-12, 1, per_decade=2),
            "gamma": controls.real(_("γ, all channels"), 1.0, -2, 2, step=0.1, form=".1f"),
            "beta": controls.real(_("β, LayerNorm"), 0.0, -2, 2, step=0.1, form=".1f"),
        }
        _show_components(made)
        return made

    def couple(self, name):
        if name == "d":
            _show_components(self.controls)

    def make_view(self):
        return NormBarsView()

    def idle(self, state):
        return {f"x{i}": _("there are {d} channels", d=state["d"]) for i in (3, 4) if i > state["d"]}

    def formula(self, data):
        mean, rms, std = (number(value, 4) for value in data.moments)
        return [
            Term("RMS²", RMS_NORM, "rms"),
            Term(" = "),
            Term("μ²", LAYER_NORM, "mean"),
            Term(" + σ²:  "),
            Term(f"{rms}²", RMS_NORM, "rms"),
            Term(" = "),
            Term(f"({mean})²", LAYER_NORM, "mean"),
            Term(f" + {std}²"),
        ]

    def compute(self, *, d, x1, x2, x3, x4, scale, shift, eps, gamma, beta):
        x = scale * np.array([x1, x2, x3, x4][:d]) + shift
        return _pair(x, eps, np.full(d, gamma), np.full(d, beta))

    def rows(self, data):
        rms_of_outputs = [number(moments(output).rms) for output in (data.rms_norm, data.layer_norm)]
        return [
            Row("x", vector(data.x), theme.FAINT, mark="x"),
            *_moment_rows(data),
            Row("RMSNorm(x)", vector(data.rms_norm), RMS_NORM, mark="rms_norm"),
            Row("LayerNorm(x)", vector(data.layer_norm), LAYER_NORM, mark="layer_norm"),
            Row(_("RMS of the two outputs"), ", ".join(rms_of_outputs), minor=True),
            _difference_row(data),
        ]


def _show_components(panel_controls: dict) -> None:
    """Show as many component sliders as there are channels."""
    for i in (3, 4):
        panel_controls[f"x{i}"].layout.display = None if i <= panel_controls["d"].value else "none"


class NormSphere(Panel[Space]):
    """Three channels in space: RMSNorm goes along the ray to the sphere, LayerNorm first drops onto a plane."""

    alt = _(
        "A sphere of radius √3 in a space of three axes, and the plane through its centre perpendicular to (1, 1, 1)."
        " The black arrow x meets the sphere at RMSNorm's output (blue circle). Dropped onto the plane it is x minus"
        " its mean, whose ray meets the circle of plane and sphere at LayerNorm's output (red square). The blue curve"
        " is where RMSNorm's output goes when x is moved along (1, 1, 1)."
    )
    _start = MappingProxyType({"x1": 2.0, "x2": 1.0, "x3": 0.0, "scale": 1.0, "shift": 0.0, "eps": _NO_EPS})
    presets = MappingProxyType(
        {
            "x = (2, 1, 0)": {**_start, "azimuth": -35, "elevation": 25},
            "x + 0.5": {**_start, "shift": 0.5},
            "x / 4": {**_start, "scale": 0.25},
            _("Mean 0"): {**_start, "shift": -1.0},
            "ε = 1": {**_start, "eps": 1.0},
            _("Look along (1, 1, 1)"): {"azimuth": 45, "elevation": 35},
        }
    )
    play = "azimuth"
    play_interval = 60
    primary = ("shift", "scale", "azimuth", "elevation")
    handles = MappingProxyType(
        {f"axis{i}": Handle(_("end of axis {number}: turn", number=i), ("azimuth", "elevation")) for i in (1, 2)}
    )
    # Tangents of even steps in angle, so that the images of x + s·(1, 1, 1) lie evenly on their half circle.
    _steps = np.tan(np.linspace(-1.565, 1.565, 61))

    def make_controls(self):
        made = {
            f"x{i}": controls.real(f"x{'₁₂₃'[i - 1]}", value, -2, 2, step=0.1, form=".1f")
            for i, value in ((1, 2.0), (2, 1.0), (3, 0.0))
        }
        return made | {
            "scale": controls.power(_("times"), 1.0, 0.01, 10, per_decade=10, also=[0.25]),
            "shift": controls.real(_("plus"), 0.0, -3, 3, step=0.1, form=".1f"),
            "eps": controls.power("ε", _NO_EPS, 1e-12, 10, per_decade=2),
            "azimuth": controls.integer(_("view, around"), -35, -180, 179, step=1),
            "elevation": controls.integer(_("view, above"), 25, -90, 90, step=1),
        }

    def make_view(self):
        return NormSphereView()

    def track(self, handle):
        around, above = (values_of(self.controls[name]) for name in ("azimuth", "elevation"))
        ends = self.view.axis_ends(int(handle[-1]) - 1, around[:, None], above)
        # An end that points away is out of a hand's reach: as far away as a page can say.
        return np.where(np.isfinite(ends), self.view.at(self.view.axes, *np.moveaxis(ends, -1, 0)), -2048)

    def compute(self, *, x1, x2, x3, scale, shift, eps, azimuth, elevation):
        pair = _pair(scale * np.array([x1, x2, x3]) + shift, eps)
        shifts = pair.moments.std * self._steps - pair.moments.mean
        return Space(
            pair=pair,
            centered=center(pair.x),
            shifted=rms_norm(pair.x + shifts[:, None], eps=eps),
            azimuth=azimuth,
            elevation=elevation,
        )

    def rows(self, data):
        pair = data.pair
        return [
            Row("x", vector(pair.x), theme.INK, mark="x"),
            Row(_("x − μ, on the plane"), vector(data.centered), minor=True, mark="centered"),
            Row(_("|μ| / RMS"), _or_dash(pair.moments.mean_over_rms, ""), minor=True),
            Row(_("RMSNorm(x), on the sphere"), vector(pair.rms_norm), RMS_NORM, mark="rms_norm"),
            Row(_("LayerNorm(x), on the circle"), vector(pair.layer_norm), LAYER_NORM, mark="layer_norm"),
            Row(_("length of the two outputs"), _lengths(pair), minor=True),
            Row(_("angle between them: arcsin(|μ| / RMS)"), _or_dash(np.degrees(pair.angle), "°", 4)),
        ]


def _lengths(pair: Pair) -> str:
    return ", ".join(number(np.linalg.norm(output)) for output in (pair.rms_norm, pair.layer_norm))


class NormResidual(Panel[Channels]):
    """Residual vectors of SmolLM2-135M as they enter a norm, all 576 channels, beside random ones."""

    alt = _(
        "Three rows over all channels of one residual vector: the input, with its mean (dashed red); RMSNorm's output"
        " (blue stems) under LayerNorm's (red squares), with dashed lines at plus and minus the square root of D; and"
        " their difference (gold). A gold diamond marks the channel whose input is largest."
    )
    primary = ("source", "token", "added", "ordered")
    handles = MappingProxyType({"mean": Handle(_("mean of the input"), ("added",), "y")})
    _start = MappingProxyType({"token": 0, "learned": False, "ordered": True, "added": 0.0, "eps": 1e-5})
    presets = MappingProxyType(
        {
            _("Massive activation"): {**_start, "source": "blk.12.attn_norm"},
            _("Half a block earlier"): {**_start, "source": "blk.11.ffn_norm"},
            _("Ordinary token"): {**_start, "source": "blk.12.attn_norm", "token": 5},
            _("Random"): {**_start, "source": "random 576"},
            _("A mean as large as the RMS"): {**_start, "source": "random 576", "added": 1.0},
        }
    )
    play = "token"
    play_interval = 250

    def make_controls(self):
        self._excerpt = load_excerpt()
        sources = {_norm_label(name): name for name in self._excerpt.residual_names}
        sources |= {_("random, D = {d}", d=d): f"random {d}" for d in (16, 64, 576)}
        return {
            "source": controls.choice(_("before the norm"), sources, "blk.12.attn_norm"),
            "token": controls.integer(_("token (or seed)"), 0, 0, len(self._excerpt.token_texts) - 1),
            "added": controls.real(_("plus, × RMS"), 0.0, -2, 2, step=0.05),
            "eps": controls.power("ε", self._excerpt.eps, 1e-12, 1e4, per_decade=2),
            "learned": controls.switch(_("times the learned γ of this norm")),
            "ordered": controls.switch(_("channels in the order of their values"), True),
        }

    def make_view(self):
        return NormResidualView()

    def idle(self, state):
        return {"learned": _("random numbers have no learned γ")} if state["source"].startswith("random") else {}

    def compute(self, *, source, token, added, eps, learned, ordered):
        if source.startswith("random"):
            x = np.random.default_rng(token).standard_normal(int(source.split()[1]))
            weight = None
        else:
            x = self._excerpt.residual(source)[token]
            weight = self._excerpt.norm_weight(source) if learned else None
        x = x + added * moments(x).rms
        order = np.argsort(x, kind="stable") if ordered else np.arange(len(x))
        text = None if source.startswith("random") else self._excerpt.token_texts[token]
        return Channels(pair=_pair(x, eps, weight), order=order, largest=int(np.abs(x).argmax()), text=text)

    def rows(self, data):
        pair, i = data.pair, data.largest
        relative = np.linalg.norm(pair.difference) / (np.linalg.norm(pair.rms_norm) or np.nan)
        return [
            Row(_("token"), "—" if data.text is None else f"“{data.text}”"),
            *_moment_rows(pair),
            Row(_("largest channel, its input"), f"{i}: {number(pair.x[i], 2)}", theme.THIRD, mark="largest"),
            Row(_("its RMSNorm output"), number(pair.rms_norm[i], 4), RMS_NORM, minor=True, mark="rms_norm"),
            Row(_("its LayerNorm output"), number(pair.layer_norm[i], 4), LAYER_NORM, minor=True, mark="layer_norm"),
            _difference_row(pair),
            Row(_("|LayerNorm − RMSNorm| / |RMSNorm|"), _or_dash(100 * relative, " %", 2)),
        ]


def _norm_label(name: str) -> str:
    """Name a norm of the model as a reader would.

    Examples
    --------
    >>> _norm_label("blk.12.attn_norm"), _norm_label("output_norm")
    ('layer 12, before attention', 'after the last layer')
    """
    if name == "output_norm":
        return _("after the last layer")
    layer, norm = name.split(".")[1:]
    if norm == "attn_norm":
        return _("layer {layer}, before attention", layer=layer)
    return _("layer {layer}, before the FFN", layer=layer)
