"""Runs of colours give their picture back, and the difference of two pictures one from the other."""

import zlib

import numpy as np
import pytest

from transformer_parts.draw.pixel_runs import LONGEST, SAME, difference, packed, runs


def a_picture(rng, shape=(37, 53), colours=5):
    return np.repeat(rng.integers(1, colours + 1, shape), 3, axis=1).astype(np.uint32)


def test_runs_are_the_picture_and_no_two_neighbours_are_alike(rng):
    picture = a_picture(rng)
    colours, lengths = runs(picture)
    assert np.array_equal(np.repeat(colours, lengths), picture.ravel())
    assert (colours[1:] != colours[:-1]).all()


@pytest.mark.parametrize("longest", [1, 2, 7, 10_000])
def test_runs_may_be_bounded(rng, longest):
    picture = a_picture(rng)
    colours, lengths = runs(picture, longest)
    assert lengths.min() > 0
    assert lengths.max() <= longest
    assert np.array_equal(np.repeat(colours, lengths), picture.ravel())


def test_a_difference_names_only_what_differs(rng):
    first = a_picture(rng)
    other = first.copy()
    other[3, 5:11] = 99
    colours, lengths = difference(other, first)
    assert set(colours.tolist()) == {SAME, 99}
    assert lengths[colours == 99].sum() == 6
    back = np.repeat(colours, lengths)
    assert np.array_equal(np.where(back == SAME, first.ravel(), back), other.ravel())
    whole = difference(other, None)
    assert np.array_equal(np.repeat(*whole), other.ravel())


def test_large_blank_pictures_have_lengths_of_two_bytes():
    blank = np.full((400, 680), 7, np.uint32)
    colours, lengths = difference(blank, blank)
    assert lengths.dtype == np.uint16
    assert lengths.max() == LONGEST
    assert lengths.sum(dtype=int) == blank.size
    assert not colours.any()


def test_packed_are_all_colours_and_then_all_lengths():
    bytes_ = zlib.decompress(packed(np.array([0x01020304, 5], np.uint32), np.array([6, 0x0708], np.uint16)))
    assert bytes_.hex(" ") == "04 03 02 01 05 00 00 00 06 00 08 07"
