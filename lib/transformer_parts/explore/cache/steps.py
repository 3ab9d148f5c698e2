"""Explorer of decoding with a cache, step by step, the right way and every wrong way."""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.cache import EXACT, CacheStepsView, Steps
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import values_of
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import budget
from transformer_parts.maths.cache import FAULTS, Chunk, Decoding, decode, misplaced, whole
from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.maths.norms import moments

WAYS = MappingProxyType(
    {
        _("right: rotated keys, own positions"): "none",
        _("new tokens restart at position 0"): "restart",
        _("new tokens one place too far"): "off by one",
        _("length read from the axis of the heads"): "head axis",
        _("later layers read a length that has grown"): "per layer",
        _("cached keys rotated again at each step"): "rotated again",
        _("padding not masked"): "padding seen",
        _("padding counted in every position"): "padding counted",
        _("padding counted for new tokens only"): "padding counted once decoding",
        _("base grows, keys cached rotated"): "base changed, rotated keys",
        _("base grows, keys cached unrotated"): "base changed, unrotated keys",
        _("base left over from a longer text"): "base not restored",
    }
)


def idle_controls(fault: str) -> dict[str, str]:
    """Return the controls that change nothing with a way of using the cache, with the reason."""
    if FAULTS[fault].scaling != "none":
        return {}
    return {"trained_length": _("the base stays as it is")}


class CacheSteps(Panel[Steps]):
    """A small stack decodes token by token; below are its cache, the attention of the newest token and the error."""

    alt = _(
        "Three rows over the slots of the cache. Above, a small clock for each cached key of each kv head, with one"
        " hand for the key as it is and a thick grey one for the key as it should be; the newest token's query stands"
        " on top. In the middle, its attention weights as bars, with the right ones in grey behind them. Below, the"
        " largest error of every step so far on a logarithmic scale: round marks where it is rounding, square ones"
        " where it is not."
    )
    presets = MappingProxyType(
        {
            label: {"pad": 0, "n_layers": 2, "layer": 1, "step": 8, "fault": fault} | more
            for label, fault, more in (
                (_("Right"), "none", {}),
                (_("Restart at 0"), "restart", {}),
                (_("Off by one"), "off by one", {}),
                (_("Rotated again"), "rotated again", {"step": 2}),
                (_("Per layer"), "per layer", {}),
                (_("Left padding"), "padding counted once decoding", {"pad": 3}),
                (_("Base grows, 1 layer"), "base changed, unrotated keys", {"n_layers": 1, "layer": 0}),
                (_("Base grows, 2 layers"), "base changed, unrotated keys", {}),
            )
        }
    )
    play = "step"
    primary = ("fault", "step", "prompt", "n_layers")
    handles = MappingProxyType(
        {
            "step": Handle(_("newest token"), ("step",), "x"),
            "prompt": Handle(_("end of the prompt"), ("prompt",), "x"),
        }
    )
    play_interval = 500

    steps, most_prompt, most_pad = 10, 10, 4
    sizes = MappingProxyType({"d_model": 32, "n_heads": 4, "head_dim": 8, "d_ff": 48})

    def __init__(self, *, language: str | None = None):
        rng = np.random.default_rng(7)
        self._tokens = rng.normal(size=(self.most_prompt + self.steps, self.sizes["d_model"]))
        self._padding = rng.normal(size=(self.most_pad, self.sizes["d_model"]))
        self._stacks = {
            groups: tuple(DecoderLayer.random(**self.sizes, n_kv_heads=groups, std=0.3, seed=i) for i in range(3))
            for groups in (1, 2, 4)
        }
        # The last run of each kind: a step shows another moment of the same run.
        self._runs: dict[str, tuple[tuple, Decoding]] = {}
        super().__init__(language=language)

    def make_controls(self):
        return {
            "fault": controls.choice(_("way"), WAYS, "restart"),
            "step": controls.integer(_("step"), 8, 0, self.steps),
            "prompt": controls.integer(_("prompt"), 6, 1, self.most_prompt),
            "pad": controls.integer(_("padding, left"), 0, 0, self.most_pad),
            "n_layers": controls.integer(_("layers"), 2, 1, 3),
            "n_kv_heads": controls.choice(_("kv heads G of 4"), (1, 2, 4), 2),
            "layer": controls.integer(_("layer shown"), 1, 0, 1),
            "head": controls.integer(_("head shown"), 0, 0, 3),
            "pair": controls.integer(_("pair shown"), 0, 0, 3),
            "trained_length": controls.integer(_("trained length"), 8, 2, 16),
        }

    def make_view(self):
        return CacheStepsView()

    def track(self, handle):
        state, axes = self.state, self.view.weights_axes
        values = values_of(self.controls[handle])
        if handle == "step":
            return self.view.at(axes, state["pad"] + state["prompt"] + values - 1, 0)
        return self.view.at(axes, state["pad"] + values - 0.5, 1)

    def idle(self, state):
        return idle_controls(state["fault"])

    def couple(self, name):
        pad, layer = self.controls["pad"], self.controls["layer"]
        if name == "fault" and "padding" in self.controls["fault"].value and not pad.value:
            pad.value = 3
        if name == "n_layers":
            layer.max = self.controls["n_layers"].value - 1

    def compute(self, *, fault, step, prompt, pad, n_layers, n_kv_heads, layer, head, pair, trained_length):
        way = FAULTS[fault]
        stack = self._stacks[n_kv_heads][:n_layers]
        x = np.concatenate([self._padding[:pad], self._tokens[: prompt + self.steps]])
        settings = {"pad": pad, "layer": layer}
        same = (prompt, pad, n_layers, n_kv_heads, layer)
        trained = trained_length if way.scaling != "none" else None
        run = self._cached(
            "run",
            (*same, fault, trained),
            lambda: decode(stack, x, prompt, fault, trained_length=trained or 1, **settings),
        )
        trained = trained if way.dynamic else None
        right = self._cached(
            "right", (*same, trained), lambda: whole(stack, x, prompt, trained_length=trained, **settings)
        )
        glance, wanted = run.glances[step], right.glances[step]
        channels = slice(2 * pair, 2 * pair + 2)
        held = pad + prompt + step
        start, new = (held - 1, 1) if step else (0, held)
        chunk = Chunk(start, new, pad, layer, n_kv_heads)
        config = budget.DecoderConfig(**self.sizes, n_layers=n_layers, n_kv_heads=n_kv_heads, vocab_size=0)
        turn = way.turn(held - pad, trained_length, self.sizes["head_dim"], stack[layer].config.rotation)
        right_weights = np.pad(wanted.weights[head], (pad, 0))
        return Steps(
            pad=pad,
            prompt=prompt,
            keys=glance.keys[..., channels],
            right_keys=wanted.keys[..., channels],
            query=glance.query[head, channels],
            right_query=wanted.query[head, channels],
            weights=glance.weights[head],
            right_weights=right_weights,
            group=head // (self.sizes["n_heads"] // n_kv_heads),
            errors=run.errors(right)[: step + 1],
            output_rms=float(moments(right.outputs[step]).rms),
            position=int(way.place(chunk)[-1]),
            right_position=int(chunk.right[-1]),
            misplaced=float(misplaced(glance.weights[head], right_weights)),
            slowest=float(turn["inv_freq"][-1]),
            token_bytes=budget.kv_cache_bytes(config, 1, 8),
            held_bytes=budget.kv_cache_bytes(config, held, 8),
        )

    def _cached(self, kind: str, key: tuple, run: Callable[[], Decoding]) -> Decoding:
        if self._runs.get(kind, ((), None))[0] != key:
            self._runs[kind] = key, run()
        return self._runs[kind][1]

    def rows(self, data):
        worst = data.errors.max()
        wrong = np.flatnonzero(data.errors > EXACT)
        verdict = _("no, first at step {step}", step=wrong[0]) if len(wrong) else _("yes, to {size:.0e}", size=EXACT)
        held = data.keys.shape[1]
        return [
            Row(_("the same as the whole sequence at once?"), verdict),
            Row(
                _("error at this step, largest over channels"),
                f"{data.errors[-1]:.2e}",
                _colour(data.errors[-1]),
                mark="errors",
            ),
            Row(_("largest error so far"), f"{worst:.2e}", _colour(worst), minor=True, mark="errors"),
            Row(_("size of the right output (RMS)"), number(data.output_rms, 3), minor=True),
            Row(
                _("attention that goes to the wrong tokens"),
                f"{100 * data.misplaced:.2f} %",
                theme.VALUE,
                mark="weights",
            ),
            Row(_("position of the newest token, right"), f"{data.right_position}", minor=True),
            Row(_("position it was turned by"), f"{data.position}", theme.QUERY, mark="query"),
            Row(_("slowest pair, rad per position"), number(data.slowest, 8), minor=True),
            Row(_("tokens in the cache, padding among them"), f"{held}, {data.pad}", minor=True),
            Row(_("bytes per token, float64: 2·layers·G·K·8"), f"{data.token_bytes:,}", minor=True),
            Row(_("bytes in the cache"), f"{data.held_bytes:,}", minor=True),
        ]


def _colour(error: float) -> str:
    return theme.FIRST if error <= EXACT else theme.SECOND
