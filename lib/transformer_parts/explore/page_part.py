"""What a page must know of a panel to draw it, beside its frames."""

from collections.abc import Mapping
from typing import Protocol

import ipywidgets as widgets

from transformer_parts.draw.view import SCALE, View
from transformer_parts.explore.controls import same
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.ranges import described
from transformer_parts.language import _

#: So many controls are always seen where a panel does not name them.
PRIMARY = 4


class Shown(Protocol):
    """What a page's part needs of a panel; `Panel` says what each is."""

    alt: str
    controls: Mapping[str, widgets.ValueWidget]
    guide: Mapping[str, str]
    handles: Mapping[str, Handle]
    initial: Mapping[str, object]
    play: str | None
    play_interval: int
    presets: Mapping[str, Mapping[str, object]]
    primary: tuple[str, ...]

    @property
    def state(self) -> dict[str, object]: ...

    @property
    def view(self) -> View: ...

    def idle(self, state: Mapping[str, object]) -> Mapping[str, str]: ...

    def translate(self, message: str) -> str: ...


def of(panel: Shown) -> dict[str, object]:
    """Return what a page must know from the beginning, by the traits of `FrontEnd`."""
    width, height = panel.view.size
    plays = panel.controls[panel.play].description if panel.play else ""
    words = {
        "settings": _("Settings"),
        "play": _("Play: {control}", control=plays),
        "pause": _("Pause: {control}", control=plays),
        "more": _("More controls"),
        "rows": _("All numbers, all digits"),
        "copy": _("Copy this state"),
        "copied": _("Copied"),
        "busy": _("The kernel is busy. The newest value is shown when it is free."),
    }
    return {
        "controls": controls(panel),
        "presets": [panel.translate(label) for label in (*panel.presets, _("Reset"))],
        "guide": [panel.translate(panel.guide.get(label, "")) for label in panel.presets],
        "play": panel.play or "",
        "interval": panel.play_interval,
        "size": {"width": width, "height": height, "pixelRatio": SCALE},
        "alt": panel.translate(panel.alt),
        "handles": [
            {"name": name, "label": panel.translate(label), "controls": list(names), "along": along}
            for name, (label, names, along) in panel.handles.items()
        ],
        "shows": {
            name: [i for i, one in enumerate(panel.view.moving_artists) if one in artists]
            for name, artists in panel.view.shows.items()
        },
        "primary": list(panel.primary or panel.controls)[: len(panel.primary) or PRIMARY],
        "words": {name: panel.translate(text) for name, text in words.items()},
    }


def controls(panel: Shown) -> list[dict[str, object]]:
    """Return what a page must know of each control, with the reason why it changes nothing at present."""
    idle = panel.idle(panel.state)
    return [
        described(name, control) | {"reason": panel.translate(idle.get(name, ""))}
        for name, control in panel.controls.items()
    ]


def code(panel: Shown) -> str:
    """Return code that makes a panel in the present state."""
    moved = {name: value for name, value in panel.state.items() if not same(panel.initial[name], value)}
    name = type(panel).__name__
    call = f"panel.set({', '.join(f'{name}={value!r}' for name, value in moved.items())})\n" if moved else ""
    return f"from {type(panel).__module__} import {name}\n\npanel = {name}()\n{call}panel"
