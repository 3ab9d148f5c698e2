"""What stands in the pictures of notebook 09, read back from their artists."""

import dataclasses

import numpy as np
import pytest
from matplotlib.patches import ArrowStyle
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.draw import theme
from transformer_parts.draw.norms import (
    Channels,
    NormBarsView,
    NormResidualView,
    NormSphereView,
    Pair,
    Space,
    camera,
    circle,
    front_and_back,
)
from transformer_parts.maths.norms import angle, center, layer_norm, moments, rms_norm

EPS = 1e-12


def pair(x) -> Pair:
    x = np.asarray(x, float)
    rms, layer = rms_norm(x, eps=EPS), layer_norm(x, eps=EPS)
    return Pair(x, rms, layer, moments(x), float(angle(rms, layer)))


def channels(x, order=None) -> Channels:
    x = np.asarray(x, float)
    order = np.arange(len(x)) if order is None else order
    return Channels(pair(x), order, int(np.abs(x).argmax()))


def space(x, azimuth=-35, elevation=25) -> Space:
    shifts = np.tan(np.linspace(-1.5, 1.5, 31))[:, None]
    return Space(pair(x), center(x), rms_norm(np.asarray(x) + shifts, eps=EPS), azimuth, elevation)


# ---------------------------------------------------------------- bars


def test_bars_end_at_the_numbers():
    view, data = NormBarsView(), pair([1, 0, 0, 0])
    view.frame(data)
    drawn = (view.input_bars, view.rms_bars, view.layer_bars, view.difference_bars)
    for (bars, ends), values in zip(
        drawn, (data.x, data.rms_norm, data.layer_norm, data.layer_norm - data.rms_norm), strict=True
    ):
        segments = np.array(bars.get_segments())
        assert_allclose(segments[:, 1, 1], values)
        assert_allclose(segments[:, 0, 1], 0)
        assert_allclose(ends.get_ydata(), values)
        assert_array_equal(segments[:, 1, 0], ends.get_xdata())
    assert_allclose(view.mean_level[0].get_ydata(), 0.25)
    assert_allclose(view.rms_level[0].get_ydata(), 0.5)


@pytest.mark.parametrize("x", [[1, 3], [0, 0], [1e-3, -1e-3, 1e-3], [4000, -3000, 5, 0]])
def test_every_bar_fits_its_axes(x):
    view, data = NormBarsView(), pair(x)
    view.update(data)
    for axes, values in ((view.input_axes, data.x), (view.output_axes, [*data.rms_norm, *data.layer_norm])):
        low, high = axes.get_ylim()
        assert low < min(values) <= max(values) < high
    assert view.input_axes.get_xlim() == (0.5, len(x) + 0.5)


def test_three_bars_of_a_channel_stand_apart_in_one_order():
    view = NormBarsView().update(pair([1, 3]))
    places = [bars[1].get_xdata() for bars in (view.rms_bars, view.layer_bars, view.difference_bars)]
    assert_allclose(np.diff(places, axis=0), 0.22)
    assert {bars[1].get_marker() for bars in (view.rms_bars, view.layer_bars, view.difference_bars)} == {"o", "s", "D"}


@pytest.mark.parametrize("value", [1e-9, 0.0999999999999, 0.3, 1.0, 3.0000001, 7, 1234])
def test_limits_come_in_steps(value):
    step = theme.step_above(value)
    assert value <= step * (1 + 1e-9)
    assert step <= 2.0001 * value
    assert theme.step_above(step) == step


# ---------------------------------------------------------------- residual


def stem_ends(line) -> tuple[np.ndarray, np.ndarray]:
    x, y = (np.reshape(values, (-1, 3)) for values in line.get_data())
    assert_array_equal(y[:, 0], 0)
    assert np.isnan(y[:, 2]).all()
    return x[:, 1], y[:, 1]


@pytest.mark.parametrize("ordered", [False, True])
def test_stems_end_at_the_numbers(rng, ordered):
    x = rng.standard_normal(577)
    x[311] = 2e4
    data = channels(x, np.argsort(x) if ordered else None)
    view = NormResidualView()
    view.frame(data)
    for line, values in (
        (view.input_stems, data.pair.x),
        (view.rms_stems, data.pair.rms_norm),
        (view.difference_stems, data.pair.difference),
    ):
        places, ends = stem_ends(line)
        assert_array_equal(places, np.arange(577))
        assert_allclose(ends, values[data.order])
    assert_allclose(view.layer_points.get_ydata(), data.pair.layer_norm[data.order])
    for mark in view.marks:
        assert_array_equal(mark.get_xdata(), [576 if ordered else 311])
    assert_allclose([line.get_ydata()[0] for line, _ in view.bounds], [577**0.5, -(577**0.5)])


def test_largest_channel_of_few_is_marked_too():
    view = NormResidualView().update(channels([0.5, -3.0, 1.0]))
    assert view.marks[0].get_ydata() == [-3.0]
    assert view.input_axes.get_xlim()[1] == pytest.approx(2 + 0.5 + 0.036)


# ---------------------------------------------------------------- space


@pytest.mark.parametrize(("azimuth", "elevation"), [(0, 0), (-35, 25), (123, -67), (45, 90)])
def test_camera_is_a_rotation(azimuth, elevation):
    rows = camera(azimuth, elevation)
    assert_allclose(rows @ rows.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(rows) == pytest.approx(1)
    # The eye is at this azimuth and elevation.
    eye = rows[2]
    assert np.degrees(np.arcsin(eye[2])) == pytest.approx(elevation)
    if abs(elevation) < 90:
        assert np.degrees(np.arctan2(eye[1], eye[0])) == pytest.approx(azimuth)


def test_camera_agrees_with_matplotlib_axes3d():
    proj3d = pytest.importorskip("mpl_toolkits.mplot3d.proj3d")
    azimuth, elevation = np.radians([-35, 25])
    eye = [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    axes = proj3d._view_axes(np.array(eye), np.zeros(3), np.array([0, 0, 1.0]), 0)
    assert_allclose(camera(-35, 25), axes, atol=1e-15)


@pytest.mark.parametrize("normal", [[1, 1, 1], [0, 0, 1], [-2, 0.1, 3]])
def test_circle_is_round_closed_and_level(normal):
    points = circle(normal, 1.5, 0.4)
    unit = np.array(normal) / np.linalg.norm(normal)
    assert_allclose(points @ unit, 0.4)
    assert_allclose(np.linalg.norm(points - 0.4 * unit, axis=1), 1.5)
    assert_allclose(points[0], points[-1], atol=1e-14)


def test_front_and_back_share_out_all_points(rng):
    curve = rng.standard_normal((50, 3))
    front, back = front_and_back(curve)
    assert_array_equal(np.isnan(front), ~np.isnan(back))
    assert_array_equal(np.where(np.isnan(front), back, front), curve[:, :2])
    assert_array_equal(np.isnan(back[:, 0]), curve[:, 2] >= 0)


def test_outputs_stand_where_the_camera_puts_them():
    view, data = NormSphereView(), space([2, 1, 0])
    view.frame(data)
    screen = camera(-35, 25).T
    for point, vector in ((view.rms_point, data.pair.rms_norm), (view.layer_point, data.pair.layer_norm)):
        assert_allclose(np.ravel(point.get_data()), (vector @ screen)[:2])
    # RMSNorm's output lies on the ray of x: seen from anywhere, the two are in line with the centre.
    (start, end), rms = view.x_arrow[0]._posA_posB, np.ravel(view.rms_point.get_data())
    assert start == (0, 0)
    assert end[0] * rms[1] == pytest.approx(end[1] * rms[0])


def test_seen_along_ones_the_mean_cannot_be_seen():
    """From (1, 1, 1) x and x - μ are one point, and LayerNorm's circle is the outline of the sphere."""
    view = NormSphereView().update(space([2, 1, 0], 45, np.degrees(np.arctan(0.5**0.5))))
    assert_allclose(view.x_arrow[0]._posA_posB[1], view.centered_arrow[0]._posA_posB[1], atol=1e-12)
    assert_allclose(np.linalg.norm(view.disc.get_xy(), axis=1), 3**0.5)
    assert not view.ones_symbol.get_visible()


def test_a_vector_without_length_has_no_arrow():
    view = NormSphereView()
    view.frame(space([0, 0, 0]))
    assert not view.x_arrow[0].get_visible()
    view.frame(space([1, 1, 1]))
    assert view.x_arrow[0].get_visible()
    assert not view.centered_arrow[0].get_visible()


@pytest.mark.parametrize("x", [[2.98, 3.02, 3.02], [20, -20, 20], [-17, 3, 0], [0, 0, 23], [-2, -2, 13]])
@pytest.mark.parametrize(("azimuth", "elevation"), [(-35, 25), (45, 0), (135, 35), (-180, -90), (100, 60)])
def test_nothing_of_a_long_vector_leaves_the_picture(x, azimuth, elevation):
    view, data = NormSphereView(), space(x, azimuth, elevation)
    view.frame(data)
    page = view.fig.bbox
    for (arrow, name), vector in ((view.x_arrow, data.pair.x), (view.centered_arrow, data.centered)):
        end = np.array(arrow._posA_posB[1])
        seen = (vector @ camera(azimuth, elevation).T)[:2]
        assert end[0] * seen[1] == pytest.approx(end[1] * seen[0], abs=1e-9), "cut, not turned"
        cut = np.hypot(*end) < np.hypot(*seen) - 1e-9
        assert cut == (np.abs(seen) > view.room).any()
        assert isinstance(arrow.get_arrowstyle(), ArrowStyle.Curve if cut else ArrowStyle.CurveFilledB)
        boxes = [arrow.get_window_extent()] + ([name.get_window_extent()] if name.get_visible() else [])
        for box in (*boxes, *(line.get_clip_box() for line in (view.drop, *view.rays))):
            assert page.x0 <= box.x0 <= box.x1 <= page.x1
            assert page.y0 <= box.y0 <= box.y1 <= page.y1


@pytest.mark.parametrize("azimuth", range(-180, 180, 45))
@pytest.mark.parametrize("x", [[2.98, 3.02, 3.02], [20, 20, 20], [3, 2.5, 2.8]])
def test_x_does_not_cross_the_name_of_the_axis_it_goes_along(x, azimuth):
    view = NormSphereView()
    view.frame(space(x, azimuth, 25))
    arrow, name = view.x_arrow
    box = view.ones_symbol.get_window_extent()
    assert not box.overlaps(name.get_window_extent())
    way = np.linspace(0, 1, 200)[:, None] * arrow._posA_posB[1]
    assert not any(box.contains(*point) for point in view.axes.transData.transform(way))


def test_every_field_of_the_space_is_drawn():
    view = NormSphereView()
    data = space([2, 1, 0])
    seen = {view.frame(data)}
    other = space([1, 2, 0.5], 10, 60)
    for field in dataclasses.fields(data):
        seen.add(view.frame(dataclasses.replace(data, **{field.name: getattr(other, field.name)})))
    assert len(seen) == 1 + len(dataclasses.fields(data))
