"""Measured loss of a real model on a long text, by method of context extension."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.long_context import LongContextLossView, LossByPosition
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.runs import long_context, recorded

NAMES = MappingProxyType(
    {
        "plain": _("as trained"),
        "yarn": "YaRN",
        "ntk_aware": _("NTK-aware"),
        "dynamic_ntk": _("dynamic NTK"),
        "position_interpolation": _("Position Interpolation"),
        "restarted": _("restarted at 8,192"),
    }
)


class LongContextLoss(Panel[LossByPosition]):
    """SmolLM2's loss over 16,384 tokens of a book: measured once, drawn here."""

    alt = _(
        "The mean loss of each block of 1,024 positions of a long text. Blue dots: the chosen method; black: the one it"
        " is held against; thin grey: the other methods. The ground is grey beyond the configured length of 8,192."
    )
    presets = MappingProxyType(
        {
            _("What goes wrong"): {"method": "plain", "beside": "restarted", "relative": False},
            "YaRN": {"method": "yarn", "beside": "plain", "relative": False},
            _("PI, not fine-tuned"): {"method": "position_interpolation", "beside": "plain", "relative": False},
            _("Worth it?"): {"method": "yarn", "beside": "restarted", "relative": True},
            _("Short texts"): {"method": "yarn", "beside": "plain", "relative": True},
        }
    )

    primary = ("method", "beside", "relative")
    guide = MappingProxyType(
        {
            _("What goes wrong"): _(
                "Some way beyond the configured length the loss as trained rises; after a restart it does not."
            ),
            _("Worth it?"): _(
                "Below 0 YaRN is better than forgetting: clearly so only in the first block beyond 8,192."
            ),
        }
    )
    handles = MappingProxyType({"method": Handle(_("end of the method's line"), ("method",), "y")})

    def make_controls(self):
        self.recording = recorded.load(long_context.NAME)
        series, length = self.recording.series, self.recording.arguments["length"]
        # A measurement that was stopped lacks methods, or has some of them for the first window alone.
        measured = [name for name in NAMES if series.get(name)]
        windows = [window for window in series["plain"] if all(window in series[name] for name in measured)]
        starts = [length * int(window.removeprefix("window ")) for window in windows]
        parts = {
            _("{first:,} to {last:,}", first=start, last=start + length): window
            for start, window in zip(starts, windows, strict=True)
        }
        methods = {NAMES[name]: name for name in measured}
        self.presets = {
            label: values
            for label, values in type(self).presets.items()
            if {values["method"], values["beside"]} <= set(measured)
        }
        shown = {
            "method": controls.named(_("method, blue"), methods, "yarn"),
            "beside": controls.choice(_("beside, black"), methods, "plain"),
            "window": controls.choice(_("tokens of the book"), parts, windows[0]),
            "relative": controls.switch(_("less the loss of the black one")),
        }
        return shown if len(windows) > 1 else {name: shown[name] for name in shown if name != "window"}

    def make_view(self):
        return LongContextLossView()

    def compute(self, *, method, beside, relative, window="window 0"):
        losses = {name: windows[window] for name, windows in self.recording.series.items() if window in windows}
        arguments = self.recording.arguments
        return LossByPosition(
            block=arguments["block"],
            trained_length=arguments["trained_length"],
            losses=losses,
            names={name: NAMES[name] for _label, name in self.controls["method"].options},
            method=method,
            beside=beside,
            relative=relative,
        )

    def track(self, handle):
        return self.view.ends(self.compute(**self.state))

    def rows(self, data):
        within = data.trained_length // data.block
        chosen, beside = data.losses[data.method], data.losses[data.beside]

        def row(label: str, part: slice) -> Row:
            one, other = chosen[part].mean(), beside[part].mean()
            return Row(label, f"{number(one, 3)}, {number(other, 3)}, {one - other:+.3f}")

        worst = within + int(np.argmax(np.abs(chosen - beside)[within:]))
        return [
            Row(_("mean loss in nats a token: blue, black, difference"), ""),
            row(_("positions up to 8,192"), slice(within)),
            row(_("8,192 to 12,288"), slice(within, within + 4)),
            row(_("12,288 to 16,384"), slice(within + 4, None)),
            row(_("the last block"), slice(-1, None)),
            Row(_("largest difference beyond: block from"), f"{data.block * worst:,}", minor=True),
            Row(
                _("perplexity of the last block"),
                f"{number(np.exp(chosen[-1]), 1)}, {number(np.exp(beside[-1]), 1)}",
                minor=True,
            ),
        ]
