"""Explorer of causality: change one token and see which outputs change."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.decoder_layer import CHANGED, LEAKED, DecoderCausalityView, Moved
from transformer_parts.explore import controls
from transformer_parts.explore.decoder_layer.walk import MASKS, PLACES, STD, VISIBLE
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths.decoder import StackConfig, leak, random_layer, spread


class DecoderCausality(Panel[Moved]):
    """A stack of one to six layers, a token that is changed, and a mask that is right or not."""

    alt = _(
        "Two maps whose columns are positions. Above, a row for each layer: the largest change of any channel after"
        " one token was changed. Below, the channels after the chosen layer. A cell that is exactly zero is white and"
        " holds a 0; the others are coloured on a logarithmic scale. The changed token's column has a blue frame;"
        " cells before it that moved have red ones."
    )
    _start = MappingProxyType({"T": 8, "token": 3, "size": 1.0, "sees": "causal", "placement": "pre", "rope": True})
    presets = MappingProxyType(
        {
            _("One layer"): {**_start, "n_layers": 1, "layer": 1},
            _("A stack of four"): {**_start, "n_layers": 4, "layer": 4},
            _("No mask"): {**_start, "n_layers": 4, "layer": 4, "sees": "everything"},
            _("One diagonal too far"): {**_start, "n_layers": 4, "layer": 4, "token": 6, "sees": "one ahead"},
            _("Wrong way round"): {**_start, "n_layers": 4, "layer": 4, "sees": "wrong way"},
        }
    )
    play = "token"
    play_interval = 500
    primary = ("token", "layer", "n_layers", "sees")
    guide = MappingProxyType(
        {
            _("One layer"): _(
                "Which columns move? The changed token and those after it; all before it stay, in every bit."
            ),
            _("A stack of four"): _("It is so at any depth. Click another token to change that one."),
            _("No mask"): _("Without a mask a change reaches the tokens before it: the red frames."),
            _("One diagonal too far"): _("Each layer carries the change one position further back."),
            _("Wrong way round"): _("Tokens before the changed one move, and none after it: the mask is transposed."),
        }
    )
    handles = MappingProxyType(
        {
            "token": Handle(_("token that is changed"), ("token",), "x"),
            "layer": Handle(_("layer whose channels are below"), ("layer",), "y"),
        }
    )
    sizes = MappingProxyType({"vocab_size": 1, "n_layers": 1, "d_model": 8, "n_heads": 2, "d_ff": 16})

    def make_controls(self):
        return {
            "token": controls.integer(_("t, token changed"), 3, 0, 7),
            "sees": controls.choice(_("mask"), MASKS, "causal"),
            "n_layers": controls.integer(_("layers"), 4, 1, 6),
            "layer": controls.integer(_("after layer"), 4, 0, 4),
            "T": controls.integer(_("T, tokens"), 8, 2, 12),
            "size": controls.power(_("change, size"), 1.0, 1e-3, 10, per_decade=4),
            "placement": controls.choice(_("norms stand"), PLACES, "pre"),
            "rope": controls.switch("RoPE", True),
            "seed": controls.integer(_("seed"), 0, 0, 20),
        }

    def make_view(self):
        return DecoderCausalityView()

    def couple(self, name):
        if name == "T":
            self.controls["token"].max = self.controls["T"].value - 1
        elif name == "n_layers":
            self.controls["layer"].max = self.controls["n_layers"].value

    def compute(self, *, token, sees, n_layers, layer, T, size, placement, rope, seed):
        config = StackConfig(**self.sizes, placement=placement, rope_base=10000.0 if rope else None)
        rng = np.random.default_rng([seed, 15])
        x, change = rng.standard_normal((DecoderCausalityView.most_tokens, 8))[:T], size * rng.standard_normal(8)
        layers = [random_layer(config, std=STD, seed=100 * seed + i) for i in range(n_layers)]
        moved = spread(layers, x, token, change, config, sees=sees)
        return Moved(spread=moved, token=token, layer=layer, leak=leak(moved[-1], token), sees=sees)

    def track(self, handle):
        view, state = self.view, self.state
        if handle == "token":
            return view.at(view.channel_axes, (np.arange(state["T"]) + 0.5) / state["T"], 1)
        count = state["n_layers"] + 1
        return view.at(view.reach_axes, 0, 1 - (np.arange(count) + 0.5) / count)

    def rows(self, data):
        last, t = data.reach[-1], data.token
        moved = [str(position) for position in np.flatnonzero(last)]
        return [
            Row(_("mask: a token sees"), VISIBLE[data.sees]),
            Row(
                _("largest change before t"), _("none before it") if t == 0 else _size(data.leak), LEAKED, mark="leaked"
            ),
            Row(_("largest change at t"), number(last[t]), CHANGED, minor=True, mark="changed"),
            Row(
                _("largest change after t"),
                _("none after it") if t == len(last) - 1 else _size(last[t + 1 :].max()),
                minor=True,
            ),
            Row(
                _("positions that moved"),
                _("{n} of {all}: {positions}", n=len(moved), all=len(last), positions=", ".join(moved)),
            ),
            Row(_("does a token see the future?"), _("yes: it leaks") if data.leak else _("not from this one")),
        ]


def _size(change: float) -> str:
    return number(change) if change else _("exactly 0")
