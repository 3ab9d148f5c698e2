"""The controls of all panels, in one look: the label on the left, the value on the right, keys and mouse alike.

The browser rounds a ``FloatSlider`` to its step and writes the rounded value back, so that no preset between two
steps would survive.  Sliders over real numbers are therefore sliders over a list of values: an even grid, in sums or in
factors, and the exact values of worked examples among them.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import ipywidgets as widgets
import numpy as np

from transformer_parts.language import Language

#: The traits of a widget that hold words.
_WORDS = ("description", "placeholder", "tooltip")

_STYLE = MappingProxyType({"description_width": "8.5em"})
_LAYOUT = MappingProxyType({"width": "auto", "min_width": "0"})


def integer(label: str, value: int, low: int, high: int, *, step: int = 1) -> widgets.IntSlider:
    """Return a slider over whole numbers."""
    return widgets.IntSlider(value, low, high, step, description=label, style=dict(_STYLE), layout=dict(_LAYOUT))


def real(
    label: str, value: float, low: float, high: float, *, step: float, form: str = ".2f", also: Iterable[float] = ()
) -> widgets.SelectionSlider:
    """Return a slider over an even grid of numbers, `value` and the numbers of `also` among them."""
    count = round((high - low) / step)
    return _over([round(low + i * step, 10) for i in range(count + 1)], label, value, form, also)


def power(
    label: str,
    value: float,
    low: float,
    high: float,
    *,
    per_decade: int = 10,
    form: str = ".3g",
    also: Iterable[float] = (),
) -> widgets.SelectionSlider:
    """Return a slider that moves in factors from `low` to `high`, `per_decade` steps for each factor of ten."""
    count = round(per_decade * np.log10(high / low))
    return _over([float(f"{low * 10 ** (i / per_decade):.6g}") for i in range(count + 1)], label, value, form, also)


def stops(label: str, value: int, numbers: Iterable[int], *, form: str = ",") -> widgets.SelectionSlider:
    """Return a slider that stops at the whole numbers given and at `value`."""
    return _slider(label, value, sorted({value, *numbers}), form)


def named(label: str, options: Mapping[str, object], value: object) -> widgets.SelectionSlider:
    """Return a slider over things in an order of their own: names are shown, values used."""
    return _selection(label, value, tuple(options.items()))


def _over(grid: Sequence[float], label: str, value: float, form: str, also: Iterable[float]) -> widgets.SelectionSlider:
    return _slider(label, float(value), sorted({*grid, float(value), *map(float, also)}), form)


def _slider(label: str, value: float, numbers: Sequence[float], form: str) -> widgets.SelectionSlider:
    return _selection(label, value, [(format(number, form), number) for number in numbers])


def _selection(label: str, value: object, options: Sequence[tuple[str, object]]) -> widgets.SelectionSlider:
    slider = widgets.SelectionSlider(
        options=options, value=value, description=label, style=dict(_STYLE), layout=dict(_LAYOUT)
    )
    # The page lets one type into the value shown beside it, and then does not read it: see style.css.
    return slider.add_class("tp-stops")


def choice(label: str, options: Sequence[str] | Mapping[str, object], value: object) -> widgets.Dropdown:
    """Return a menu; of a mapping, its names are shown and its values used."""
    if isinstance(options, Mapping):
        options = tuple(options.items())
    return widgets.Dropdown(options=options, value=value, description=label, style=dict(_STYLE), layout=dict(_LAYOUT))


def switch(label: str, value: bool = False) -> widgets.Checkbox:
    """Return a box to tick."""
    return widgets.Checkbox(value, description=label, indent=False, layout=dict(_LAYOUT))


def translate(control: widgets.Widget, language: Language) -> None:
    """Put the words of a control, the names of its options among them, into a language; its value stays what it is.

    Options that are plain strings are their own values, so a menu of messages keeps its English values and shows the
    translated ones.
    """
    for name in _WORDS:
        words = getattr(control, name, None)
        if words and language.text(words) != words:
            setattr(control, name, language.text(words))
    if not isinstance(control, widgets.Dropdown | widgets.SelectionSlider | widgets.RadioButtons | widgets.Select):
        return
    options = [option if isinstance(option, tuple) else (option, option) for option in control.options]
    shown = [(language.text(label), value) for label, value in options]
    if shown != options:
        value = control.value
        control.options = tuple(shown)
        control.value = value
