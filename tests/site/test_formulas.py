"""Formulas: every one of the notebooks is known, and the spacing is TeX's."""

import base64
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from fontTools.ttLib import TTFont
from publish.formulas import breakable, mathml
from publish.notebook_page import with_font

PROJECT = Path(__file__).resolve().parents[2]


def formulas() -> set[str]:
    cells = [
        cell.source
        for path in (PROJECT / "notebooks").rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
    ]
    return {a or b for text in cells for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, re.DOTALL)}


def test_every_formula_of_the_notebooks_becomes_mathml():
    found = formulas()
    assert len(found) > 300
    known = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msub", "msup", "msubsup", "mfrac", "msqrt", "mroot",
             "munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded"}  # fmt: skip
    for latex in found:
        root = ElementTree.fromstring(mathml(latex))
        assert {node.tag for node in root.iter()} <= known, latex
        # MathML Core knows no other kind of letter than this.
        assert {node.get("mathvariant", "normal") for node in root.iter()} == {"normal"}, latex


def texts(latex: str) -> list[str]:
    return [node.text for node in ElementTree.fromstring(mathml(latex)).iter() if node.text]


def test_letters_of_a_kind_are_unicode_letters():
    assert texts(r"q^{\mathsf T}") == ["q", "𝖳"]
    assert texts(r"\mathbb E") == ["𝔼"]
    assert mathml(r"\operatorname{ab}") == mathml(r"\mathrm{ab}")
    assert texts(r"\Bigl\lfloor x\Bigr\rfloor") == ["⌊", "x", "⌋"]


def spaces(latex: str) -> list[str]:
    """Return the elements of a formula's row, a space as a space and a sign as ±."""
    row = next(node for node in ElementTree.fromstring(mathml(latex)).iter() if len(node) > 1)
    sign = {"prefix": "±"}
    return [" " if node.tag == "mspace" else sign.get(node.get("form"), node.text or "?") for node in row]


@pytest.mark.parametrize(
    ("latex", "wanted"),
    [
        (r"\sin a\cos b", ["sin", " ", "a", " ", "cos", " ", "b"]),
        (r"\sin(a)", ["sin", "(", "a", ")"]),
        (r"2\ln s", ["2", " ", "ln", " ", "s"]),
        (r"a-b", ["a", "−", "b"]),
        (r"(-1)", ["(", "±", "1", ")"]),
        (r"a=-b", ["a", "=", "±", "b"]),
        (r"(1,\,-2)", ["(", "1", ",", " ", "±", "2", ")"]),
        (r"f'", ["f", "′"]),
        (r"(a)-b", ["(", "a", ")", "−", "b"]),
    ],
)
def test_spaces_are_those_of_tex(latex, wanted):
    assert spaces(latex) == wanted


def test_capital_greek_is_upright_and_a_slash_stands_close():
    assert 'mathvariant="normal">Δ' in mathml(r"\Delta")
    assert 'mathvariant="normal"' not in mathml(r"\theta")
    assert '<mo lspace="0" rspace="0">/</mo>' in mathml("a/b")


@pytest.mark.parametrize("latex", [r"\partial L/\partial x", r"+\infty", r"\dots", r"\angle q"])
def test_what_tex_takes_for_a_letter_has_no_space_around(latex):
    root = ElementTree.fromstring(mathml(latex))
    assert all(node.get("lspace") == node.get("rspace") == "0" for node in root.iter("mo"))


def test_the_font_of_a_page_has_the_root_sign_in_sizes_of_one_width():
    html = with_font("src: /*font*/ " + mathml(r"\sqrt x+1"))
    font = TTFont(io.BytesIO(base64.b64decode(re.search("base64,([^)]+)", html)[1])))
    names = [name for name in font.getGlyphOrder() if name.startswith(font.getBestCmap()[ord("√")])]
    assert len(names) > 4
    assert len({font["hmtx"][name][0] for name in names}) == 1
    assert ord("+") in font.getBestCmap()


def test_a_long_formula_may_be_broken_after_relations_but_not_within_brackets():
    pieces = breakable(r"s(a=1,b=2)=\frac{x+y+z}{2}+f(u,v,w)\le 0.123456").split("<wbr>")
    assert ["".join(ElementTree.fromstring(piece).itertext()) for piece in pieces] == [
        "s(a=1,b=2)=", "x+y+z2+f(u,v,w)≤", "0.123456"
    ]  # fmt: skip
    assert breakable("a=b") == mathml("a=b")


def test_an_unknown_command_is_refused():
    with pytest.raises(ValueError, match=r"latex: got the command \\nonsense"):
        mathml(r"a \nonsense b")
