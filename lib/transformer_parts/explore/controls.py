"""The controls of all panels, in one look: the label on the left, the value on the right, keys and mouse alike.

The browser rounds a ``FloatSlider`` to its step and writes the rounded value back, so that no preset between two
steps would survive.  Sliders over real numbers are therefore sliders over a list of values: an even grid, in sums or in
factors, and the exact values of worked examples among them.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType

import ipywidgets as widgets
import numpy as np

from transformer_parts.language import Language, Message, _

#: The traits of a widget that hold words.
_WORDS = ("description", "placeholder", "tooltip")
_BOOLEANS = (bool, np.bool_)

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
    options = [
        option if isinstance(option, tuple) else (option if isinstance(option, str) else str(option), option)
        for option in control.options
    ]
    shown = [(language.text(label), value) for label, value in options]
    if shown != options:
        value = control.value
        control.options = tuple(shown)
        control.value = value


def same(own: object, value: object) -> bool:
    """Tell whether a caller's `value`, which may be anything, means a control's `own`.

    Numbers are the same whatever their type, but True is no number.

    Examples
    --------
    >>> same(1, 1.0), same(1, True), same("pre", ["pre"]), same((1, 2), (1, 2))
    (True, False, False, True)
    """
    if isinstance(own, _BOOLEANS) or isinstance(value, _BOOLEANS):
        return isinstance(own, _BOOLEANS) and isinstance(value, _BOOLEANS) and bool(own) == bool(value)
    if isinstance(own, Real):
        return isinstance(value, Real) and bool(own == value)
    if isinstance(own, tuple):
        return isinstance(value, tuple) and len(own) == len(value) and all(map(same, own, value))
    return isinstance(value, str) and str.__eq__(own, value) if isinstance(own, str) else own is value


def offered(control: widgets.Widget, value: object) -> tuple:
    """Return what a control offers at present that means `value`: nothing, or one value of the control's own."""
    if isinstance(control, widgets.IntSlider):
        inside = isinstance(value, Real) and not isinstance(value, _BOOLEANS) and control.min <= value <= control.max
        every = (int(value),) if inside and (int(value) - control.min) % control.step == 0 else ()
    else:
        every = (False, True) if isinstance(control, widgets.Checkbox) else (own for _, own in control._options_full)
    return tuple(own for own in every if same(own, value))[:1]


def range_of(control: widgets.Widget) -> Message:
    """Return which values a control can have, in words."""
    if isinstance(control, widgets.Checkbox):
        return _("{yes} or {no}", yes=True, no=False)
    if isinstance(control, widgets.IntSlider):
        if control.step > 1:
            return _("{low} to {high} in steps of {step}", low=control.min, high=control.max, step=control.step)
        return _("{low:g} to {high:g}", low=control.min, high=control.max)
    names = [option[0] if isinstance(option, tuple) else str(option) for option in control.options]
    if len(names) > 12:
        return _("one of {first}, {second} … {last}", first=names[0], second=names[1], last=names[-1])
    return _("one of {names}", names=", ".join(names))


def described(value: object) -> str:
    """Return the `repr` of anything in one short line, or its type where it has none."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:59]}…"
