"""Reads numbers as people type them: signs, powers of ten, thousands, units; and compares them as people round."""

import re
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from transformer_parts.language import _, plural
from transformer_parts.maths import require

_DECIMAL = MappingProxyType({"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12})
_BYTES = MappingProxyType(
    dict(
        {"": 1, "B": 1, "bytes": 1, "byte": 1, "KB": 1000, "kiB": 1024}
        | {f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)}
        | {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)}
    )
)
_FLOPS = MappingProxyType(
    dict(
        dict(_DECIMAL)
        | {
            f"{name}{flop}": size
            for name, size in _DECIMAL.items()
            if name != "B"
            for flop in ("FLOP", "FLOPs", "FLOPS")
        }
    )
)
#: The units of each kind of answer, each with what it multiplies by.
UNITS = MappingProxyType(
    {
        "real": MappingProxyType({"": 1, "rad": 1, "positions": 1, "tokens": 1}),
        "count": _DECIMAL,
        "bytes": _BYTES,
        "flops": _FLOPS,
    }
)
#: A real number, and a whole one that is told in fewer digits, is right within this part of it.
TOLERANCE = Fraction(1, 200)

_NUMBER = re.compile(
    r"(?P<sign>[-+]?)(?P<digits>\d+(?:[,_]\d{3})*(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<power>[-+]?\d+)|\s*[·×*x]\s*10\^?\{?(?P<ten>[-+]?\d+)\}?)?"
    r"(?:/(?P<divisor>\d+))?\s*(?P<unit>[A-Za-z]*)"
)
#: Letters of an answer; no number that is asked for needs as many.
LONGEST = 120
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


@dataclass(frozen=True)
class Given:
    """A number as it was typed."""

    value: Fraction  # with its unit
    #: What one more in its last digit would add; 0 for a fraction.  Zeros at the end of a whole number tell nothing.
    step: Fraction


class UnreadableError(ValueError):
    """An answer that cannot be read.

    Attributes
    ----------
    words : Message; what was got and what is wanted, for the reader
    """

    def __init__(self, got: str, wanted: str):
        super().__init__(f"answer: got {got}, want {wanted}")
        self.words = _("Got {got}, want {wanted}.", got=got, wanted=wanted)


def read(text: str, kind: str, count: int = 1) -> tuple[Given, ...]:
    """Return the numbers of a typed answer.

    Several numbers are separated by commas, semicolons or blanks, with or without brackets.  A single number may have
    commas between its thousands.

    Raises
    ------
    UnreadableError
        If there are not `count` numbers, or something else stands there.

    Examples
    --------
    >>> [float(given.value) for given in read("(1.5, -2)", "real", 2)]
    [1.5, -2.0]
    >>> int(read("128 KiB", "bytes")[0].value), int(read("1,234.5M", "count")[0].value)
    (131072, 1234500000)
    """
    units = UNITS[require.one_of("kind", kind, UNITS)]
    if len(text) > LONGEST:
        raise UnreadableError(_("{n} letters", n=len(text)), _("at most {most}", most=LONGEST))
    # A raised exponent is told from the digits before it by the ^ put in its place.
    plain = re.sub(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", r"10^\1", text).translate(_RAISED).strip().strip("()[]{}").strip()
    plain = plain.replace("\u202f", "").replace("\u2009", "").replace("\N{NO-BREAK SPACE}", " ")
    pieces = [plain] if count == 1 else [piece for piece in re.split(r"[;,\s]+", plain) if piece]
    if len(pieces) != count or not plain:
        raise UnreadableError(repr(text), plural("a number", "{n} numbers, separated by commas", count))
    return tuple(_read_one(piece, text, units) for piece in pieces)


def _read_one(piece: str, text: str, units: MappingProxyType) -> Given:
    match = _NUMBER.fullmatch(piece)
    if match is None or (match["divisor"] and int(match["divisor"]) == 0):
        raise UnreadableError(repr(text), _("numbers, such as 12.5, -3 or 1.2e9"))
    if match["unit"] not in units:
        known = ", ".join(filter(None, units))
        raise UnreadableError(_("the unit {unit}", unit=match["unit"]), _("one of {known}, or none", known=known))
    digits = re.sub("[,_]", "", match["digits"])
    power = int(match["power"] or match["ten"] or 0)
    if abs(power) > 30:
        raise UnreadableError(repr(text), _("a power of ten up to 30"))
    factor = units[match["unit"]] * Fraction(10) ** power
    value = Fraction(digits if digits != "." else "0") * factor / int(match["divisor"] or 1)
    if match["divisor"]:
        step = Fraction(0)
    elif "." in digits:
        step = Fraction(1, 10 ** len(digits.split(".")[1])) * factor
    else:
        step = 10 ** (len(digits) - len(digits.rstrip("0"))) * factor if int(digits) else Fraction(1) * factor
    return Given(-value if match["sign"] == "-" else value, step)


def agrees(given: Given, right: Fraction, kind: str, scale: Fraction | None = None) -> bool:
    """Tell whether a typed number is the right one, rounded as people do.

    It may be off by `TOLERANCE` of `scale` (the right number's size).  A whole number must also agree in the digits
    that were given, rounded or cut off: whoever types all of them has counted.

    Examples
    --------
    >>> (given,) = read("134.5M", "count")
    >>> agrees(given, Fraction(134515008), "count")
    True
    >>> (given,) = read("134,515,009", "count")
    >>> agrees(given, Fraction(134515008), "count")
    False
    """
    error = abs(given.value - right)
    if error > TOLERANCE * (abs(right) if scale is None else scale):
        return False
    if kind == "real":
        return True
    cut_off = given.value * right >= 0 and 0 <= abs(right) - abs(given.value) < given.step
    return error <= given.step / 2 or cut_off
