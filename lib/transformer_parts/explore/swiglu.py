"""Explorers of SwiGLU and its family: channel by channel, the gates of a real model, position by position."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.swiglu import (
    ABOVE_ONE,
    CONTENT,
    GATE,
    NEGATIVE,
    PRODUCT,
    Changes,
    Channels,
    GatedChannelsView,
    PositionChangesView,
    RealGatesView,
    Spread,
    reach_of,
)
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, Term, number, vector
from transformer_parts.language import _
from transformer_parts.maths.attention import attention
from transformer_parts.maths.feedforward import GLU_FAMILY, count_gates, ffn, fractions_in_bins, gated, glu
from transformer_parts.models.excerpt import load_excerpt

FAMILY = MappingProxyType(
    {
        "SwiGLU: SiLU": "swiglu",
        "GEGLU: GELU": "geglu",
        "ReGLU: ReLU": "reglu",
        _("GLU: sigmoid"): "glu",
        _("Bilinear: no activation"): "bilinear",
    }
)


class GatedChannels(Panel[Channels]):
    """Two inputs, two channels: each channel's gate, content and product, for every member of the family."""

    alt = _(
        "Above, the activation's curve with a numbered mark for each channel at its pre-activation. Below, for each"
        " channel three bars: the gate (blue, circle), the content (red, square) and their product (gold, triangle)."
    )
    primary = ("member", "x1", "x2")
    handles = MappingProxyType(
        {f"gate{i}": Handle(_("gate {number}", number=i), (f"g1{i}",), "x") for i in (1, 2)}
        | {f"content{i}": Handle(_("content {number}", number=i), (f"u1{i}",), "y") for i in (1, 2)}
    )
    _worked = MappingProxyType(
        {"x1": 1.0, "x2": 2.0, "g11": 1.0, "g12": -1.0, "g21": 0.0, "g22": 0.0}
        | {"u11": 2.0, "u12": 1.0, "u21": 0.0, "u22": 1.0}
    )
    presets = MappingProxyType(
        {
            _("By hand"): {**_worked, "member": "swiglu"},
            "GEGLU": {**_worked, "member": "geglu"},
            "ReGLU": {**_worked, "member": "reglu"},
            "GLU": {**_worked, "member": "glu"},
            _("Bilinear"): {**_worked, "member": "bilinear"},
            _("Gates above 1"): {**_worked, "member": "swiglu", "x1": 3.0, "g12": 0.5},
            "x = 0": {**_worked, "member": "swiglu", "x1": 0.0, "x2": 0.0},
        }
    )

    def make_controls(self):
        made = {"member": controls.choice(_("family"), FAMILY, "swiglu")}
        for name, value in self._worked.items():
            made[name] = controls.real(_label(name), value, -3, 3, step=0.1, form=".1f")
        return made

    def make_view(self):
        return GatedChannelsView()

    def formula(self, data):
        looks = (
            ("gate", GATE, data.steps.gate),
            ("content", CONTENT, data.steps.up),
            ("product", PRODUCT, data.output),
        )
        gate, content, product = (Term(number(values[0], 4), colour, mark) for mark, colour, values in looks)
        symbols = [Term("f(g₁)", GATE, "gate"), Term(" · "), Term("u₁", CONTENT, "content")]
        return [*symbols, Term(" = "), gate, Term(" · "), content, Term(" = "), product]

    def compute(self, *, member, x1, x2, g11, g12, g21, g22, u11, u12, u21, u22):
        x = np.array([x1, x2])
        w_gate, w_up = np.array([[g11, g12], [g21, g22]]), np.array([[u11, u12], [u21, u22]])
        activation = GLU_FAMILY[member]
        steps = gated(x, w_gate, w_up, activation=activation)
        reach = reach_of(steps.pre)
        grid = np.linspace(-reach, reach, 401)
        return Channels(
            x=x,
            steps=steps,
            output=glu(x, w_gate, w_up, np.eye(2), activation=activation),
            grid=grid,
            curve=activation(grid),
            reach=reach,
        )

    def rows(self, data):
        pre, gate, up = data.steps[:3]
        counts = count_gates(gate)
        return [
            Row("x", vector(data.x, 2), minor=True),
            Row(_("g = x·W of the gate"), vector(pre), mark="pre"),
            Row(_("f(g), the gate"), vector(gate), GATE, mark="gate"),
            Row(_("u = x·W of the content"), vector(up), CONTENT, mark="content"),
            Row(_("f(g) ⊙ u, and with W_down = I the output"), vector(data.output), PRODUCT, mark="product"),
            Row(
                _("gates below 0, above 1"), f"{round(2 * counts.negative)}, {round(2 * counts.above_one)}", minor=True
            ),
        ]


def _label(name: str) -> str:
    """Name a slider.

    Examples
    --------
    >>> _label("x2"), _label("g12")
    ('x₂', 'gate: x₁ → 2')
    """
    digits = "₀₁₂"
    if name[0] == "x":
        return f"x{digits[int(name[1])]}"
    channel, output = f"x{digits[int(name[1])]}", name[2]
    if name[0] == "g":
        return _("gate: {channel} → {output}", channel=channel, output=output)
    return _("content: {channel} → {output}", channel=channel, output=output)


class RealGates(Panel[Spread]):
    """The gates of SmolLM2-135M over a text, before and after the activation, beside random numbers."""

    alt = _(
        "Two histograms on logarithmic scales. Above, the pre-activations of the gates of a layer, with a dashed line"
        " at 0. Below, the gates after the activation: those below 0 in blue, those from 0 to 1 in grey, those above 1"
        " in red with hatching, with dashed lines at 0 and 1. The last column holds all that lies beyond."
    )
    untouchable = _("Each column counts thousands of gates of a real model: none can be moved.")
    _all = MappingProxyType({"token": -1, "member": "swiglu"})
    presets = MappingProxyType(
        {
            _("Layer 11"): {**_all, "source": "11"},
            _("Layer 16"): {**_all, "source": "16"},
            _("Layer 29"): {**_all, "source": "29"},
            _("All three"): {**_all, "source": "all"},
            _("Random"): {**_all, "source": "random"},
            _("… if it were GLU"): {"token": -1, "source": "all", "member": "glu"},
        }
    )
    play = "token"
    play_interval = 250
    _pre_edges = np.linspace(-8, 8, 161)
    _gate_edges = np.linspace(-1, 4, 101)

    def make_controls(self):
        self._excerpt = load_excerpt()
        layers = self._excerpt.gate_layers
        self._pre = {str(layer): self._excerpt.gate(layer) for layer in layers}
        self._pre["all"] = np.concatenate([self._pre[str(layer)] for layer in layers], axis=1)
        length = len(self._excerpt.token_texts)
        self._of_all_tokens = {}
        self._pre["random"] = np.random.default_rng(12).standard_normal((length, self._excerpt.d_ff))
        sources = {_("SmolLM2, layer {layer}", layer=layer): str(layer) for layer in layers}
        sources |= {_("SmolLM2, all three"): "all", _("standard normal numbers"): "random"}
        return {
            "source": controls.choice(_("gates of"), sources, "all"),
            "member": controls.choice(_("activation of"), FAMILY, "swiglu"),
            "token": controls.integer(_("token (−1: all)"), -1, -1, length - 1),
        }

    def make_view(self):
        return RealGatesView()

    def compute(self, *, source, member, token):
        if token >= 0:
            text = None if source == "random" else self._excerpt.token_texts[token]
            return self._spread(self._pre[source][token], member, text)
        # Three hundred thousand gates take longer than a frame may; each of these few states is computed once.
        if (source, member) not in self._of_all_tokens:
            self._of_all_tokens[source, member] = self._spread(self._pre[source], member)
        return self._of_all_tokens[source, member]

    def _spread(self, pre, member, text=None):
        gates = GLU_FAMILY[member](pre)
        return Spread(
            pre_edges=self._pre_edges,
            gate_edges=self._gate_edges,
            pre=fractions_in_bins(pre, self._pre_edges),
            gate=fractions_in_bins(gates, self._gate_edges),
            counts=count_gates(gates),
            pre_lowest=float(pre.min()),
            pre_highest=float(pre.max()),
            size=pre.size,
            text=text,
        )

    def rows(self, data):
        counts = data.counts
        return [
            Row(_("token"), "—" if data.text is None else f"“{data.text}”"),
            Row(_("gates"), f"{data.size:,}", minor=True),
            Row(
                _("g, lowest and highest"),
                f"{number(data.pre_lowest, 4)}, {number(data.pre_highest, 4)}",
                minor=True,
                mark="pre",
            ),
            Row(_("gates below 0"), _percent(counts.negative), NEGATIVE, mark="negative"),
            Row(_("gates above 1"), _percent(counts.above_one), ABOVE_ONE, mark="above"),
            Row(_("f(g), lowest and highest"), f"{number(counts.lowest, 4)}, {number(counts.highest, 4)}", minor=True),
            Row(_("share of the sum of f(g)² in gates above 1"), _percent(counts.share_above_one)),
        ]


def _percent(fraction: float) -> str:
    return "—" if np.isnan(fraction) else f"{100 * fraction:.1f} %"


class PositionChanges(Panel[Changes]):
    """One position's input is changed: which outputs does a feed-forward layer change, and which does attention?"""

    alt = _(
        "Three heat maps, a row to each of eight positions, a column to each channel, the changed position framed:"
        " the change of the input, of the feed-forward layer's output (its row alone) and of causal attention's output"
        " (its row and all below)."
    )
    presets = MappingProxyType(
        {
            _("SwiGLU, position 2"): {"position": 2, "size": 1.0, "layer": "swiglu"},
            _("… the last position"): {"position": 7, "size": 1.0, "layer": "swiglu"},
            _("No change"): {"position": 2, "size": 0.0, "layer": "swiglu"},
        }
    )
    play = "position"
    play_interval = 500
    handles = MappingProxyType({"position": Handle(_("position that is changed"), ("position",), "y")})
    _length, _width, _hidden = 8, 16, 40

    def make_controls(self):
        layers = {"SwiGLU": "swiglu", "GEGLU": "geglu", _("Bilinear"): "bilinear", _("plain, ReLU"): "plain"}
        return {
            "position": controls.integer(_("position t"), 2, 0, self._length - 1),
            "size": controls.real(_("size of Δx"), 1.0, 0, 3, step=0.1, form=".1f"),
            "layer": controls.choice(_("FFN"), layers, "swiglu"),
            "seed": controls.integer(_("seed"), 0, 0, 20),
        }

    def make_view(self):
        return PositionChangesView()

    def track(self, handle):
        return self.view.at(self.view.maps[0].axes, 0, np.arange(self._length))

    def idle(self, state):
        return {} if state["size"] else dict.fromkeys(("layer", "seed"), _("the input is not changed"))

    def compute(self, *, position, size, layer, seed):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((self._length, self._width))
        w_gate, w_up = rng.standard_normal((2, self._width, self._hidden)) / self._width**0.5
        w_down = rng.standard_normal((self._hidden, self._width)) / self._hidden**0.5
        changed = x.copy()
        changed[position] += size * rng.standard_normal(self._width)

        def feedforward(x):
            if layer == "plain":
                return ffn(x, w_gate, w_down)
            return glu(x, w_gate, w_up, w_down, activation=GLU_FAMILY[layer])

        def attend(x):
            return attention(x[None], x[None], x[None], causal=True)[0]

        return Changes(
            of_input=changed - x,
            of_feedforward=feedforward(changed) - feedforward(x),
            of_attention=attend(changed) - attend(x),
            position=position,
        )

    def rows(self, data):
        outside = np.arange(self._length) != data.position
        return [
            Row(_("position changed"), str(data.position)),
            Row(_("positions whose FFN output changed"), _listed(data.of_feedforward)),
            Row(_("positions whose attention output changed"), _listed(data.of_attention)),
            Row(_("largest change of the FFN's other rows"), number(np.abs(data.of_feedforward[outside]).max())),
            Row(_("largest change of attention's other rows"), number(np.abs(data.of_attention[outside]).max())),
        ]


def _listed(change: np.ndarray) -> str:
    rows = np.flatnonzero(np.any(change != 0, axis=-1))
    return ", ".join(map(str, rows)) if len(rows) else _("none")
