"""The table: numbers in a fixed form, words escaped, changes announced."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.explore.readout import Row, number, table, vector


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (2.1213203435596424, 6, "2.121320"),
        (-0.0, 6, "0.000000"),
        (0, 2, "0.00"),
        (1.5e-9, 6, "1.500000e-09"),
        (-1.5e-9, 6, "-1.500000e-09"),
        (5e-7, 6, "0.000000"),  # one half of the last digit: still that digit's business, and rounds to even
        (5.1e-7, 6, "0.000001"),
        (999999999999.0, 0, "999999999999"),
        (1e12, 3, "1.000e+12"),
        (float("inf"), 6, "inf"),
        (float("-inf"), 6, "-inf"),
        (float("nan"), 6, "nan"),
    ],
)
def test_number(value, digits, text):
    assert number(value, digits) == text


@given(st.floats(-1e300, 1e300), st.integers(1, 12))
def test_number_never_hides_a_value_nor_shows_a_signed_nought(value, digits):
    text = number(value, digits)
    shown = float(text)
    assert (shown == 0) <= (abs(value) <= 0.5 * 10.0**-digits)
    assert abs(shown - value) <= max(0.5000001 * 10.0**-digits, abs(value) * 10.0**-digits)
    assert shown != 0 or not text.startswith("-")


def test_vector():
    assert vector([1, 2.5], 2) == "(1.00, 2.50)"
    assert vector([], 2) == "()"
    assert vector(range(9), 0) == "(0, 1, 2, 3, 4, 5, 6, 7, …)"
    assert vector(range(8), 0, most=8) == "(0, 1, 2, 3, 4, 5, 6, 7)"
    assert vector(iter([1.0, 2.0, 3.0]), 1, most=2) == "(1.0, 2.0, …)"


def test_table_has_a_header_for_each_value():
    html = table([Row("score", "2.1"), Row("length", "5", "#004488")])
    root = ElementTree.fromstring(html)
    assert root.attrib == {"class": "tp-readout", "role": "status", "aria-live": "polite"}
    rows = [(("".join(tr.find("th").itertext())), tr.find("td").text) for tr in root]
    assert rows == [("score", "2.1"), ("length", "5")]
    assert {th.attrib["scope"] for th in root.iter("th")} == {"row"}


def test_a_percent_sign_stays_on_the_line_of_its_number():
    (value,) = (td.text for td in ElementTree.fromstring(table([Row("share", "5 of 9 steps, 55.56 %")])).iter("td"))
    assert value == "5 of 9 steps, 55.56\N{NO-BREAK SPACE}%"


def test_swatch_has_the_colour_and_is_not_read_aloud():
    plain, coloured = table([Row("a", "1")]), table([Row("a", "1", "#004488")])
    assert "<span" not in plain
    (swatch,) = ElementTree.fromstring(coloured).iter("span")
    assert swatch.attrib["aria-hidden"] == "true"
    assert "#004488" in swatch.attrib["style"]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])), st.text("<>&\"'ab"))
def test_any_words_come_out_as_they_went_in(label, value):
    root = ElementTree.fromstring(table([Row(label, value)]))
    assert "".join(root.find("tr/th").itertext()) == label
    assert (root.find("tr/td").text or "") == value


def test_a_table_that_changes_by_itself_is_not_announced():
    assert "aria-live" in table([Row("a", "1")])
    assert (
        table([Row("a", "1")], announced=False)
        == '<table class="tp-readout">' + table([Row("a", "1")]).split(">", 1)[1]
    )
