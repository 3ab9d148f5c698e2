"""The spectrum of wavelengths: circles within the trained length, squares beyond it."""

import numpy as np
import pytest

from transformer_parts.draw.rope_scores_spectrum import Spectrum, SpectrumView


def spectrum(trained_length=100, offset=7, pairs=6) -> Spectrum:
    wavelengths = 2 * np.pi * 10.0 ** np.arange(pairs)
    return Spectrum(wavelengths, wavelengths / 2, trained_length, offset, np.cos(offset * 2 * np.pi / wavelengths))


@pytest.fixture
def view():
    return SpectrumView()


def test_a_pair_is_complete_when_its_wave_fits():
    assert spectrum(trained_length=63).complete.tolist() == [True, True, False, False, False, False]
    assert spectrum(trained_length=62).complete.tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize(("length", "whole"), [(1, 0), (63, 2), (10**7, 6)])
def test_circles_and_squares_are_the_two_kinds(view, length, whole):
    view.update(spectrum(trained_length=length))
    assert view.whole.get_xdata().tolist() == list(range(whole))
    assert view.partial.get_xdata().tolist() == list(range(whole, 6))
    for patch in view.unfinished:
        assert patch.get_x() == whole - 0.5
        assert patch.get_width() == pytest.approx(5.6 - patch.get_x() if whole < 6 else 0)


def test_levels_and_bars_are_the_data(view):
    data = spectrum(offset=9)
    view.update(data)
    assert view.trained.get_ydata() == [100, 100]
    assert view.distance.get_ydata() == [9, 9]
    assert [segment[1][1] for segment in view.stems.get_segments()] == data.alignment.tolist()
    assert view.mean.get_ydata() == pytest.approx([data.alignment.mean()] * 2)
    assert view.reference.get_ydata().tolist() == data.reference.tolist()


@pytest.mark.parametrize(("length", "offset"), [(64, 64), (64, 65), (65, 64), (4096, 2048), (64, 131_072)])
def test_symbols_never_lie_on_each_other(view, length, offset):
    view.update(spectrum(trained_length=length, offset=offset))
    heights = np.log10([view.trained_symbol.get_position()[1], view.distance_symbol.get_position()[1]])
    assert abs(heights[0] - heights[1]) > 0.65
    assert (heights[0] > heights[1]) == (length >= offset)
