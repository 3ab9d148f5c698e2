"""Numbers as people type them."""

from fractions import Fraction

import pytest

from transformer_parts.learn.quantity import agrees, read


@pytest.mark.parametrize(
    ("text", "kind", "value", "step"),
    [
        ("12", "real", 12, 1),
        ("-3.50", "real", Fraction(-7, 2), Fraction(1, 100)),
        ("−3.5", "real", Fraction(-7, 2), Fraction(1, 10)),
        (".5", "real", Fraction(1, 2), Fraction(1, 10)),
        ("8/3", "real", Fraction(8, 3), 0),
        ("1.2e3", "real", 1200, 100),
        ("1.2·10³", "real", 1200, 100),
        ("1.2 x 10^3", "real", 1200, 100),
        ("1.2·10⁻³", "real", Fraction(12, 10_000), Fraction(1, 10_000)),
        ("0.5 rad", "real", Fraction(1, 2), Fraction(1, 10)),
        ("1,234,567", "count", 1_234_567, 1),
        ("1_234_567", "count", 1_234_567, 1),
        ("1 234 567".replace(" ", "\u202f"), "count", 1_234_567, 1),
        ("134500000", "count", 134_500_000, 10**5),
        ("134.5M", "count", 134_500_000, 10**5),
        ("8.03 B", "count", 8_030_000_000, 10**7),
        ("12k", "count", 12_000, 1000),
        ("128 KiB", "bytes", 131_072, 1024),
        ("1 GiB", "bytes", 2**30, 2**30),
        ("1.5 GB", "bytes", 1_500_000_000, 10**8),
        ("131072 bytes", "bytes", 131_072, 1),
        ("19.3 GFLOP", "flops", 19_300_000_000, 10**8),
        ("19.3e9 FLOPs", "flops", 19_300_000_000, 10**8),
        ("0", "real", 0, 1),
    ],
)
def test_one_number(text, kind, value, step):
    (given,) = read(text, kind)
    assert (given.value, given.step) == (value, step)


@pytest.mark.parametrize("text", ["1.5, -2", "(1.5, -2)", "[1.5 -2]", "1.5; -2", " 1.5,-2 ", "{1.5,\t-2}"])
def test_several_numbers(text):
    assert [given.value for given in read(text, "real", 2)] == [Fraction(3, 2), -2]


@pytest.mark.parametrize(
    ("text", "kind", "count", "message"),
    [
        ("", "real", 1, "answer: got '', want a number"),
        ("1, 2", "real", 3, "want 3 numbers, separated by commas"),
        ("one", "real", 1, "want numbers, such as"),
        ("1,23", "real", 1, "want numbers, such as"),
        ("12 miles", "real", 1, "got the unit miles, want one of rad"),
        ("1 GiB", "count", 1, "got the unit GiB"),
        ("1/0", "real", 1, "want numbers"),
        ("1e31", "real", 1, "a power of ten up to 30"),
        ("1", "weight", 1, "kind: got 'weight'"),
        ("9" * 5000, "count", 1, "got 5000 letters, want at most 120"),
        ("1e" + "9" * 5000, "real", 1, "got 5002 letters"),
        ("9" * 5000, "real", 2, "got 5000 letters"),
        ("NaN", "real", 1, "want numbers, such as"),
        ("inf", "flops", 1, "want numbers, such as"),
    ],
)
def test_what_is_refused(text, kind, count, message):
    with pytest.raises(ValueError, match=message):
        read(text, kind, count)


@pytest.mark.parametrize(
    ("text", "right", "kind", "wanted"),
    [
        ("2.5", "2.501254", "real", True),
        ("2.501254", "2.501254", "real", True),
        ("2.49", "2.501254", "real", True),
        ("2.48", "2.501254", "real", False),
        ("-2.5", "2.501254", "real", False),
        ("134.5M", "134515008", "count", True),
        ("135M", "134515008", "count", True),
        ("134M", "134515008", "count", True),
        ("134.4M", "134515008", "count", False),
        ("134.6M", "134515008", "count", False),
        ("130M", "134515008", "count", False),
        ("134,515,008", "134515008", "count", True),
        ("134,515,007", "134515008", "count", False),
        ("11008", "11008", "count", True),
        ("11000", "11008", "count", True),
        ("11007", "11008", "count", False),
    ],
)
def test_rounding(text, right, kind, wanted):
    assert agrees(read(text, kind)[0], Fraction(right), kind) == wanted
