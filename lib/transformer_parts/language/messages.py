"""Messages: strings in English that remember their template and values, so that a language can say them again."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType


class Message(str):
    """A string that reads as its English text and remembers what it was made of.

    Whatever makes a new string of it (``+``, an f-string, ``str.upper``, ``str()``) gives a plain string, which no
    language translates.

    Parameters
    ----------
    template : str
        The English template.  Without values it is the text itself, and its braces are braces; with values it is
        filled by `str.format`.
    values : mapping of str to object, optional
        The values by name.  A value may be a message, which is translated first.
    plural : str, optional; the template for every number but one; the number is the value ``n``

    Attributes
    ----------
    template, plural : str, str or None
    values : mapping of str to object
    """

    __slots__ = ("plural", "template", "values")
    template: str
    plural: str | None
    values: Mapping[str, object]

    def __new__(cls, template: str, values: Mapping[str, object] | None = None, plural: str | None = None):
        values = MappingProxyType(dict(values or {}))
        chosen = template if plural is None or values["n"] == 1 else plural
        made = super().__new__(cls, fill(chosen, values))
        for name, value in (("template", str(template)), ("values", values), ("plural", plural)):
            super().__setattr__(made, name, value)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a message cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name}: a message cannot be changed")

    def __reduce__(self):
        return type(self), (self.template, dict(self.values), self.plural)


def fill(template: str, values: Mapping[str, object]) -> str:
    """Put values into a template; without values the template is the text."""
    return template.format(**values) if values else template


def message(template: str, /, **values: object) -> Message:
    """Return the message of a template and its values; other modules call it ``_``.

    Examples
    --------
    >>> message("turned by {angle:.2f} rad", angle=1.5708)
    'turned by 1.57 rad'
    >>> message("the set {1, 2}")
    'the set {1, 2}'
    >>> message("{part} of {n} layers", part=message("first"), n=30).template
    '{part} of {n} layers'
    """
    return Message(template, values)


def plural(one: str, many: str, n: int, /, **values: object) -> Message:
    """Return the message of a number: `one` for 1, `many` otherwise; the number is the value ``n``.

    Examples
    --------
    >>> plural("{n} step", "{n} steps", 1), plural("{n} step of {of}", "{n} steps of {of}", 0, of=9)
    ('1 step', '0 steps of 9')
    """
    return Message(one, {"n": n, **values}, many)


def join(separator: str, parts: Iterable[str]) -> Message:
    """Return messages joined by a separator, each still to be translated; plain strings stay as they are.

    Examples
    --------
    >>> join(", ", [message("query"), message("key")])
    'query, key'
    """
    values = {f"part{index}": part for index, part in enumerate(parts)}
    # The separator stands in the template: braces in it are doubled.
    template = separator.replace("{", "{{").replace("}", "}}").join(f"{{{name}}}" for name in values)
    return Message(template, values)
