"""Checks of arguments: what passes comes back, what does not is named, with what it is and what is wanted."""

import re
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from transformer_parts.maths import require


def refused(message):
    return pytest.raises(ValueError, match="^" + message)


def test_refusal_shows_what_it_got_as_it_is_told():
    assert str(require.refusal("n", repr("7"), "an integer")) == "n: got '7', want an integer"
    assert str(require.refusal("x", "shape (2, 3)", "one axis")) == "x: got shape (2, 3), want one axis"


class TestBoolean:
    @pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
    def test_both_boolean_types_pass_as_bool(self, value):
        assert type(require.boolean("tied", value)) is bool
        assert require.boolean("tied", value) == value

    @pytest.mark.parametrize("value", [0, 1, 1.0, None, "no", "", [True], np.array([True]), np.array(True)])
    def test_other_types_are_refused(self, value):
        with refused(rf"tied: got {re.escape(repr(value))}, want True or False$"):
            require.boolean("tied", value)


class TestInteger:
    @pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
    def test_every_integer_type_passes_as_int(self, value):
        assert type(require.integer("n", value)) is int
        assert require.integer("n", value) == 3

    @pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.array([3]), 1 + 0j])
    def test_other_types_are_refused(self, value):
        with refused(r"n: got .*, want an integer of at least 1$"):
            require.integer("n", value)

    def test_limits(self):
        assert require.integer("n", -2, minimum=-2) == -2
        assert require.integer("n", 6, maximum=6, multiple_of=3) == 6
        with refused(r"n: got 0, want an integer of at least 1$"):
            require.integer("n", 0)
        with refused(r"n: got 7, want an integer of at least 1 and at most 6$"):
            require.integer("n", np.int64(7), maximum=6)
        with refused(r"n: got 3, want an integer of at least 2 that is even$"):
            require.integer("n", 3, minimum=2, multiple_of=2)
        with refused(r"n: got 4, want an integer of at least 1 that is a multiple of 3$"):
            require.integer("n", 4, multiple_of=3)


class TestNumber:
    @pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), Fraction(2)])
    def test_every_real_type_passes_as_float(self, value):
        assert type(require.number("eps", value)) is float
        assert require.number("eps", value) == 2

    @pytest.mark.parametrize("value", [True, "2", None, 2j, [2.0], np.nan, np.inf, -np.inf, 10**400])
    def test_others_are_refused(self, value):
        with refused(r"eps: got .*, want a finite number$"):
            require.number("eps", value)

    def test_limits(self):
        assert require.number("eps", 5e-324, above=0) == 5e-324
        assert require.number("eps", 0, minimum=0, maximum=0) == 0
        with refused(r"eps: got 0.0, want a finite number above 0$"):
            require.number("eps", 0, above=0)
        with refused(r"eps: got -1.0, want a finite number of at least 0$"):
            require.number("eps", -1, minimum=0)
        with refused(r"eps: got 2.0, want a finite number of at least 0 and at most 1$"):
            require.number("eps", 2, minimum=0, maximum=1)


def test_one_of():
    assert require.one_of("layout", "split", ("interleaved", "split")) == "split"
    for value in ("halves", None, 1, ["split"], np.array(["split", "split"])):
        with refused(r"layout: got .*, want one of 'interleaved', 'split'$"):
            require.one_of("layout", value, ("interleaved", "split"))
    with refused(r"layout: got 'b'"):
        require.one_of("layout", "b", {"a": 1})


class TestArray:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.longdouble, ml_dtypes.bfloat16])
    def test_floating_dtypes_are_kept_and_not_copied(self, dtype):
        x = np.ones((2, 3), dtype)
        assert require.array("x", x) is x
        assert require.floating("x", x) is x

    @pytest.mark.parametrize("value", [[1, 2], np.array([1, 2], np.uint8), (1, 2.0), [Fraction(1).numerator, 2]])
    def test_integers_become_float64(self, value):
        x = require.array("x", value)
        assert x.dtype == np.float64
        assert_array_equal(x, [1, 2])

    @pytest.mark.parametrize("check", [require.array, require.floating])
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ([[1], [1, 2]], "got a list, want an array whose rows have one length"),
            (["a"], "got an array of <U1, want real numbers"),
            ([1j], "got an array of complex128, want real numbers"),
            ([True], "got an array of bool, want real numbers"),
            (None, "got an array of object, want real numbers"),
            ([None, 1.0], "got an array of object, want real numbers"),
            (
                np.ma.masked_array([1.0, np.nan, 3.0], [False, True, True]),
                "got a masked array, 2 of its entries masked, want every entry",
            ),
            (
                np.ma.masked_array([1, 2], [True, False]),
                "got a masked array, 1 of its entries masked, want every",
            ),
            (1.0, r"got shape \(\), want at least 1 axis"),
            ([], r"got shape \(0,\), want no empty axis"),
            (np.ones((2, 0, 3)), r"got shape \(2, 0, 3\), want no empty axis"),
        ],
    )
    def test_what_is_no_array_of_reals_is_refused(self, check, value, message):
        with refused("x: " + message):
            check("x", value)

    def test_a_masked_array_without_masked_entries_is_its_numbers(self):
        x = require.array("x", np.ma.masked_array([1.0, 2.0], [False, False]))
        assert type(x) is np.ndarray
        assert_array_equal(x, [1, 2])

    def test_the_number_of_axes(self):
        assert require.array("x", 1.5, min_ndim=0).shape == ()
        with refused(r"x: got shape \(3,\), want at least 2 axes"):
            require.array("x", np.ones(3), min_ndim=2)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.longdouble, ml_dtypes.bfloat16])
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_non_finite_entries_are_counted_and_the_first_is_shown(self, dtype, bad):
        x = np.zeros((3, 5, 7)).astype(dtype)
        x[1, 4, 6] = x[2, 0, 0] = bad
        with refused(rf"x: got {bad} at index \(1, 4, 6\) \(2 such in all\), want finite numbers"):
            require.array("x", x)
        with refused(r"x: got .*index \(0, 0, 2\)"):
            require.array("x", x.T)
        with refused(r"x: got .* want finite numbers"):
            require.all_numbers("x", x)
        assert require.floating("x", x) is x
        if np.isnan(bad):
            with refused(r"x: got nan at index \(1, 4, 6\) \(2 such in all\), want no NaN"):
                require.array("x", x, finite=False)
        else:
            assert require.array("x", x, finite=False) is x

    def test_squares_that_overflow_are_finite_numbers_all_the_same(self):
        for x in (np.full(7, 1e30, np.float32), np.full((3, 5), -1e300), np.full(3, 60000, np.float16)):
            assert require.all_finite(x)
            assert require.array("x", x) is x


def test_cast():
    x = np.array([1.5, -2.0])
    assert require.cast("w", x, np.dtype(np.float64)) is x
    half = require.cast("w", x, np.dtype(np.float16))
    assert half.dtype == np.float16
    assert_array_equal(half, x)
    with refused(r"w: got -1e\+39, want numbers within float32"):
        require.cast("w", np.array([0, -1e39]), np.dtype(np.float32))
    with refused(r"w: got 70000.0, want numbers within float16"):
        require.cast("w", np.array([7e4]), np.float16)
    # what was infinite before is not this check's business
    assert_array_equal(require.cast("w", np.array([np.inf]), np.float32), [np.inf])


class TestShapes:
    def test_shape(self):
        require.shape("w", np.ones((3, 5)), (3, 5), "that of v")
        require.shape("w", np.ones((3, 5)), (3, "F"), "its first axis the last of x")
        for have, wanted, text in (
            ((3, 5), (2, "F"), r"\(2, F\)"),
            ((3, 5), ("D",), r"\(D,\)"),
            ((3,), (3, "F"), r"\(3, F\)"),
        ):
            with refused(rf"w: got shape .*, want shape {text}, so it is"):
                require.shape("w", np.ones(have), wanted, "so it is")

    def test_ndim(self):
        require.ndim("q", np.ones((2, 3)), 2)
        with refused(r"q: got shape \(2, 3\), want exactly 1 axis$"):
            require.ndim("q", np.ones((2, 3)), 1)
        with refused(r"q: got shape \(2,\), want exactly 2 axes$"):
            require.ndim("q", np.ones(2), 2)

    def test_even_last_axis(self):
        require.even_last_axis("x", np.ones((3, 4)))
        with refused(r"x: got shape \(4, 3\), want an even last axis, all of whose channels make pairs$"):
            require.even_last_axis("x", np.ones((4, 3)))

    def test_last_axis(self):
        require.last_axis("k", np.ones((2, 3)), 3, "q")
        with refused(r"k: got shape \(2, 3\), want a last axis of 5, as q$"):
            require.last_axis("k", np.ones((2, 3)), 5, "q")

    def test_broadcasts(self):
        for shape in ((), (1,), (3,), (2, 1), (2, 3)):
            require.broadcasts("mask", shape, (2, 3), "the scores")
        for shape in ((2,), (3, 3), (1, 2, 3), (5, 2, 3)):  # an axis more is refused, even of size 1
            with refused(r"mask: got shape .*, want a shape that broadcasts to \(2, 3\), the scores$"):
                require.broadcasts("mask", shape, (2, 3), "the scores")

    def test_broadcasts_with(self):
        for shape in ((), (5, 1, 3), (2, 1)):
            require.broadcasts_with("k", shape, (2, 3), "q's axes")
        with refused(r"k: got shape \(5,\), want a shape that broadcasts with \(2, 3\), q's axes$"):
            require.broadcasts_with("k", (5,), (2, 3), "q's axes")


def test_function():
    require.function("activation", np.tanh)
    for value in (None, "relu", 1.0):
        with refused(r"activation: got .*, want a function of one array"):
            require.function("activation", value)


@pytest.mark.parametrize(
    ("dtype", "floating", "compute"),
    [
        (np.float64, True, np.float64),
        (np.float32, True, np.float32),
        (np.float16, True, np.float32),
        (ml_dtypes.bfloat16, True, np.float32),
        (np.longdouble, True, np.longdouble),
        (">f4", True, np.float32),
        (">f2", True, np.float32),
        (np.int32, False, None),
        (np.complex64, False, None),
        (bool, False, None),
    ],
)
def test_dtypes(dtype, floating, compute):
    dtype = np.dtype(dtype)
    assert require.is_floating(dtype) is floating
    if floating:
        assert require.compute_dtype(dtype) == np.dtype(compute)
        assert require.compute_dtype(dtype).isnative
