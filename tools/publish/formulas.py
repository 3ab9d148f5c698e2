"""Formulas as MathML, which browsers draw by themselves: no script, no network, read aloud and copied as text.

latex2mathml translates; here its output is brought to what TeX would set.  MathML Core knows a letter's kind (sans
serif, double-struck, …) only by its Unicode character, and takes the space around operators from a table of its own,
in which a minus after a bracket is a difference and a slash stands alone.
"""

import re
import unicodedata
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert

_BIG = re.compile(r"(\\[bB]igg?[lrm]?)\s*\\(lfloor|rfloor|lceil|rceil|langle|rangle|vert|Vert|\|)")
_DELIMITERS = {
    "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "langle": "⟨", "rangle": "⟩",
    "vert": "|", "Vert": "‖", "|": "‖",
}  # fmt: skip
# As Unicode names the letters: MATHEMATICAL SANS-SERIF CAPITAL T.
_KINDS = {
    "bold": "BOLD", "italic": "ITALIC", "bold-italic": "BOLD ITALIC", "sans-serif": "SANS-SERIF",
    "double-struck": "DOUBLE-STRUCK", "script": "SCRIPT", "fraktur": "FRAKTUR", "monospace": "MONOSPACE",
}  # fmt: skip
_SCRIPTS = ("msub", "msup", "msubsup", "munder", "mover", "munderover")
# Characters of a formula that is not broken, and after what a longer one may be.
_UNBROKEN = 20
_BREAKS = "=<>≤≥≈≠←→⇒,"
_THIN, _WIDE = "0.167em", "0.278em"


def mathml(latex: str, *, block: bool = False) -> str:
    """Return a formula as MathML.

    Raises
    ------
    ValueError
        If it holds a command that is not known.
    """
    latex = _BIG.sub(lambda found: found[1] + _DELIMITERS[found[2]], latex.strip())
    # latex2mathml sets the letters of \operatorname like variables.
    result = convert(latex.replace("\\operatorname{", "\\mathrm{"), display="block" if block else "inline")
    if "\\" in result:
        command = re.search(r"\\\w*", result)[0]
        raise ValueError(f"latex: got the command {command} in {latex!r}, want one that latex2mathml knows")
    root = ElementTree.fromstring(result.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))
    for node in root.iter():
        _set_letters(node)
    for node in list(root.iter()):
        if node.tag in ("math", "mrow", "mtd", "msqrt", "mstyle", "mpadded"):
            _set_spaces(node)
    return ElementTree.tostring(root, encoding="unicode")


def breakable(latex: str) -> str:
    """Return a formula within a line; a long one in pieces after its relations, between which the line may break.

    Browsers break no line within MathML.
    """
    whole = mathml(latex)
    row = ElementTree.fromstring(whole).find("mrow")
    if row is None or len("".join(row.itertext())) <= _UNBROKEN:
        return whole
    pieces, depth = [Element("mrow")], 0
    for node in row:
        text = node.text if node.tag == "mo" else ""
        pieces[-1].append(node)
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if text and text in _BREAKS and depth == 0:
            node.set("form", "infix")
            pieces.append(Element("mrow"))
    made = (ElementTree.tostring(piece, encoding="unicode") for piece in pieces if len(piece))
    return "<wbr>".join(f'<math display="inline">{piece}</math>' for piece in made)


def _set_letters(node: Element) -> None:
    """Give identifiers the letters of their kind, and names of functions the form of names."""
    text = (node.text or "").strip()
    if node.tag == "mo" and re.fullmatch(r"[A-Za-z][A-Za-z0-9 ]*|[∞∂∇…∠]", text):
        node.tag, node.text = "mi", text
    elif node.tag == "mo" and text == "―":
        # The line that grows with what is below it.
        node.text = "‾"
    if node.tag == "mi" and text in ("∂", "∇"):
        node.set("mathvariant", "normal")
    if node.tag == "mi" and "GREEK CAPITAL" in (unicodedata.name(text, "") if len(text) == 1 else ""):
        node.set("mathvariant", "normal")
    if node.tag == "msup" and re.fullmatch("′+", node[1].text or ""):
        # The character is raised already.
        node.tag = "mrow"
        node[1].set("mathvariant", "normal")
    kind = node.get("mathvariant")
    if node.tag in ("mi", "mn") and kind in _KINDS:
        node.text = "".join(_letter(letter, _KINDS[kind]) for letter in text)
        # One letter alone would be set in italics.
        node.set("mathvariant", "normal")


def _letter(letter: str, kind: str) -> str:
    name = unicodedata.name(letter, "")
    place = re.fullmatch(r"LATIN (CAPITAL|SMALL) LETTER (\w)", name)
    wanted = f"{place[1]} {place[2]}" if place else name.replace("GREEK ", "").replace(" LETTER", "")
    for start in ("MATHEMATICAL " + kind, kind):
        try:
            return unicodedata.lookup(f"{start} {wanted}")
        except KeyError:
            continue
    return letter


def _set_spaces(row: Element) -> None:
    """Space the elements of a row as TeX does."""
    row[:] = [node for node in row if not (node.tag == "mo" and not (node.text or "").strip())]
    before: Element | None = None
    for node in list(row):
        if node.tag == "mo":
            _set_operator(node, before)
        elif (_is_function(node) and _is_operand(before)) or (_is_operand(node) and _is_function(before)):
            row.insert(list(row).index(node), Element("mspace", width=_THIN))
        # A gap after a comma does not make a sign a difference.
        before = before if node.tag == "mspace" and before is not None and before.tag == "mo" else node


def _set_operator(node: Element, before: Element | None) -> None:
    text = node.text.strip()
    if text in "+-−±∓" and (before is None or (before.tag == "mo" and before.text.strip() not in ")]}|‖⌋⌉⟩!′")):
        # A sign, not a difference.
        node.attrib |= {"form": "prefix", "lspace": "0", "rspace": "0"}
    elif text in "/|‖()[]{}⌊⌋⌈⌉⟨⟩":
        node.attrib |= {"lspace": "0", "rspace": "0"}
    elif text == ":":
        node.attrib |= {"lspace": _WIDE, "rspace": _WIDE}
    if text in "|‖" and "fence" not in node.attrib:
        node.set("stretchy", "false")


def _is_function(node: Element | None) -> bool:
    """Whether it is a name such as sin, or such a name with a power."""
    if node is not None and node.tag in _SCRIPTS:
        node = node[0]
    return node is not None and node.tag == "mi" and len(node.text or "") > 1 and node.text.isascii()


def _is_operand(node: Element | None) -> bool:
    return node is not None and node.tag not in ("mo", "mspace", "mtext")
