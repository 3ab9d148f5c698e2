"""Recorded frames: numbers that depend on the picture alone, and drawings that are those of the pixels.

That a page paints them as the pixels are is tried in tests/site, in a browser.
"""

import re

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.path import Path

from transformer_parts.draw import recorded_image
from transformer_parts.draw.recorder import Drawings, Numbered, Recorder
from transformer_parts.draw.recording import Recording
from transformer_parts.draw.settings import drawing
from transformer_parts.draw.svg_path import STEPS, path_data
from transformer_parts.explore.rope import RopePlane


@pytest.fixture(scope="module")
def plane():
    return RopePlane()


def test_a_frame_is_the_same_whatever_was_recorded_before(plane):
    first, second = (plane.compute(**plane.state | {"shift": shift}) for shift in (0, 7))
    recording = Recording(plane.make_view())
    there = recording.frame(first), recording.frame(second)
    assert there[0] != there[1]
    assert (recording.frame(first), recording.frame(second)) == there
    fresh = Recording(plane.make_view())
    fresh.frame(second)
    assert drawn(fresh, fresh.frame(first)) == drawn(recording, there[0])


def drawn(recording: Recording, frame: tuple[tuple[int, ...], ...]) -> list:
    """Return what a frame draws, without the numbers of one recording."""
    paths, styles, parts = (list(vars(recording.drawings)[name]) for name in ("paths", "styles", "parts"))
    marks = [mark for part in (*frame[0], *frame[1]) for mark in parts[part]]
    return [(paths[outline], styles[style][:7], *places) for outline, style, *places in marks]


def test_a_frame_has_the_background_and_each_moving_artist(plane):
    view = plane.make_view()
    recording = Recording(view)
    (still, before), (as_still, after) = (
        recording.frame(plane.compute(**plane.state | changes)) for changes in ({}, {"m": 9})
    )
    assert len(before) == len(after) == len(view._moving)
    # The background stays, and something moves.
    assert still == as_still
    assert before != after


@drawing
def drawn_alone(text, recorder):
    text.draw(recorder)
    return text.get_window_extent(recorder)


def test_a_text_is_recorded_where_the_pixels_have_it():
    """Glyph by glyph, or by matplotlib 3.10 as one outline."""
    drawings = Drawings()
    recorder = Recorder(200, 100, 100, drawings)
    figure = Figure(figsize=(2, 1), dpi=100)
    for words in ("a word", "$x^2$ and"):
        box = drawn_alone(figure.text(0.25, 0.5, words, size=20), recorder)
        number = recorder.take()
        marks = list(drawings.parts)[number]
        corners = []
        for outline, _style, *places in marks:
            numbers = re.sub("[a-z]", " ", list(drawings.paths)[outline]).replace("-", " -").split()
            start = [int(number) for number in numbers[:2]]  # where the outline begins
            corners += [(start[0] + x, start[1] + y) for x, y in zip(places[::2], places[1::2], strict=True)]
        x, y = np.array(corners).T / STEPS
        assert box.x0 - 3 < x.min() <= x.max() < box.x1 + 3
        assert 100 - box.y1 - 3 < y.min() <= y.max() < 100 - box.y0 + 3


def test_a_new_background_is_recorded_when_the_view_asks_for_one(plane):
    view = plane.make_view()
    recording = Recording(view)
    data = plane.compute(**plane.state)
    before = recording.frame(data)
    view.fig.axes[0].set_facecolor("#123456")
    assert recording.frame(data)[0] == before[0]
    view.redraw_background()
    after = recording.frame(data)
    assert after[0] != before[0]
    assert any(style[0] == "#123456" for style in recording.drawings.styles)


def test_recordings_are_small(plane):
    recording = Recording(plane.make_view())
    for shift in range(20):
        recording.frame(plane.compute(**plane.state | {"shift": shift}))
    # Texts and marks that come again are kept once.
    assert len(recording.drawings.parts) < 20 * len(recording.view._moving)
    assert len(recording.drawings.styles) < 40


def test_numbers_are_given_once():
    numbered = Numbered()
    assert [numbered.number(thing) for thing in "abac"] == [0, 1, 0, 2]
    assert list(numbered) == ["a", "b", "c"]


def points(data: str) -> list[tuple[float, float]]:
    """Read path data of straight lines back, by the letter of the SVG specification."""
    found, x, y = [], 0, 0
    for letter, numbers in re.findall(r"([mlz])([^mlz]*)", data):
        values = [int(n) for n in re.findall(r"-?\d+", numbers)]
        for dx, dy in zip(values[::2], values[1::2], strict=True):
            x, y = x + dx, y + dy
            found.append((x / STEPS, y / STEPS))
        assert letter != "z" or not values
    return found


def test_path_data_read_back_are_the_path_within_half_a_step(rng):
    vertices = rng.uniform(-500, 500, (101, 2))
    assert np.abs(np.array(points(path_data(vertices))) - vertices).max() <= 0.5 / STEPS


def test_path_data_have_curves_and_closings():
    circle = Path.unit_circle()
    data = path_data(100 * circle.vertices, circle.codes)
    assert data.startswith("m0-800c")
    assert data.endswith("z")
    numbers = [abs(int(n)) for n in data.strip("mz").replace("c", " ").replace("-", " ").split()]
    # Each of the curves of a circle of 800 steps has six numbers.
    assert (len(numbers) - 2) % 6 == 0
    assert max(numbers) <= 800


def decoded(image: tuple) -> np.ndarray:
    cells, widths, heights, colours = image
    table = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5, 7)] for colour in colours], np.uint8)
    numbers = np.array([ord(cell) - recorded_image.FIRST for cell in cells]).reshape(len(heights), len(widths))
    return table[np.repeat(np.repeat(numbers, heights, axis=0), widths, axis=1)]


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (11, 5)])
def test_an_image_comes_back_as_it_was(rng, shape):
    cells = rng.integers(0, 256, (*shape, 4)).astype(np.uint8)
    enlarged = np.repeat(np.repeat(cells, rng.integers(1, 9, shape[0]), axis=0), rng.integers(1, 9, shape[1]), axis=1)
    image = recorded_image.encode(enlarged)
    assert (len(image[2]), len(image[1])) == shape
    assert np.array_equal(decoded(image), enlarged)


def test_an_image_of_many_colours_comes_back(rng):
    pixels = rng.integers(0, 256, (60, 70, 4)).astype(np.uint8)
    assert np.array_equal(decoded(recorded_image.encode(pixels)), pixels)


def test_a_collection_that_is_nowhere_moved_is_recorded():
    figure = Figure(figsize=(1, 1), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.add_collection(
        PathCollection([Path([(0, 0), (9, 0), (9, 9)])], offsets=[(10, 20), (30, 40)], offset_transform=None)
    )
    drawings = Drawings()
    recorder = Recorder(100, 100, 100, drawings)
    axes.collections[0].draw(recorder)
    assert recorder.take() == 0
    (marks,) = drawings.parts
    starts = [points(list(drawings.paths)[outline])[0] for outline, *_ in marks]
    # Counted from the top, and within the half pixel of a line that snaps.
    assert np.abs(np.array(starts) - [(10, 80), (30, 60)]).max() <= 0.5
