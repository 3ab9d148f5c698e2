"""The contract of a view: built once, then only data change, and the data alone decide every pixel."""

import io
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.explore.catalogue import PANELS

STEPS = 16


class LineView(View[tuple]):
    """A line over two axes' background, its limits following the data."""

    size = (80, 60)
    builds = 0

    def build(self):
        self.builds += 1
        self.axes = theme.style(self.fig.add_axes((0.2, 0.2, 0.7, 0.7)))
        self.line = self.moving(self.axes.plot([], [], color=theme.QUERY)[0])
        self.under = self.moving(self.axes.plot([0, 1], [1, 0], color=theme.KEY, linewidth=6, zorder=1)[0])

    def update(self, data):
        ys, top = data
        if top is None:
            raise ValueError("top: got None, want a number")
        self.limits(self.axes, x=(0, len(ys) - 1), y=(0, top))
        self.line.set_data(range(len(ys)), ys)
        return self


@pytest.fixture
def view():
    return LineView()


@pytest.fixture
def backgrounds(view, monkeypatch):
    """Count how often the background is drawn."""
    drawn = []
    draw = view.fig.canvas.draw
    monkeypatch.setattr(view.fig.canvas, "draw", lambda: (drawn.append(1), draw()))
    return drawn


def pixels(view, data):
    """Return the pixels of a frame before its encoding."""
    view.frame(data)
    return np.asarray(view.fig.canvas.buffer_rgba())[..., :3].copy()


def artists(view):
    """Return all artists by identity, but ticks, which matplotlib makes and drops as limits ask for them."""
    return [view.fig, *view.fig.get_children(), *(artist for axes in view.fig.axes for artist in axes.get_children())]


# ---------------------------------------------------------------- small views


def test_figure_has_its_size_in_css_pixels_at_the_scale():
    assert pixels(LineView(), ([0, 1], 1)).shape == (120, 160, 3)
    assert pixels(LineView(scale=1), ([0, 1], 1)).shape == (60, 80, 3)
    assert pixels(LineView(scale=3), ([0, 1], 1)).shape == (180, 240, 3)


def test_built_once_and_update_returns_the_view(view):
    assert view.update(([0, 1], 1)) is view
    view.frame(([1, 0], 1))
    assert view.builds == 1


def test_update_changes_the_picture_and_keeps_the_artists(view):
    before, first = artists(view), pixels(view, ([0, 1, 0], 1))
    assert not np.array_equal(pixels(view, ([1, 0, 1], 1)), first)
    assert np.array_equal(pixels(view, ([0, 1, 0], 1)), first)
    after = artists(view)
    assert len(after) == len(before)
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_background_is_drawn_only_for_limits_not_seen_before(view, backgrounds):
    view.frame(([0, 1], 1))
    assert len(backgrounds) == 1
    view.frame(([1, 0], 1))
    view.frame(([0.5, 0.2], 1.0))
    assert len(backgrounds) == 1
    view.frame(([0, 1], 2))
    assert len(backgrounds) == 2
    view.frame(([0, 1, 2], 2))
    assert len(backgrounds) == 3
    known = view.frame(([0, 1], 1)), view.frame(([0, 1], 2))
    assert len(backgrounds) == 3
    assert known == (LineView().frame(([0, 1], 1)), LineView().frame(([0, 1], 2)))
    view.frame(([2, 1, 2], 2))
    assert len(backgrounds) == 3
    view.redraw_background()
    view.frame(([2, 1, 2], 2))
    assert len(backgrounds) == 4


def test_limits_sets_what_is_asked(view):
    view.limits(view.axes, x=(-2, 3))
    assert view.axes.get_xlim() == (-2, 3)
    y = view.axes.get_ylim()
    view.limits(view.axes, y=(7, -7))
    assert view.axes.get_ylim() == (7, -7) != y
    assert view.axes.get_xlim() == (-2, 3)


def test_moving_artists_are_drawn_in_the_order_of_their_zorder(view):
    view.line.set(linewidth=6)
    view.update(([0, 1], 1))
    x, y = np.rint(view.axes.transData.transform((0.5, 0.5))).astype(int)
    picture = pixels(view, ([0, 1], 1))
    assert tuple(picture[picture.shape[0] - y, x]) == tuple(bytes.fromhex(theme.QUERY[1:]))
    view.under.set_zorder(9)
    assert tuple(pixels(view, ([0, 1], 1))[picture.shape[0] - y, x]) == tuple(bytes.fromhex(theme.KEY[1:]))


def test_failed_update_leaves_no_trace(view):
    good = ([0, 1, 0], 3)
    first = view.frame(good)
    with pytest.raises(ValueError, match="top"):
        view.frame(([5, 5, 5, 5], None))
    assert view.frame(good) == first


def test_frame_and_still_show_the_same(view):
    data = ([0, 1, 0], 1)
    live = np.asarray(Image.open(io.BytesIO(view.frame(data))), dtype=float)
    still = np.asarray(Image.open(io.BytesIO(view.still(data))))
    assert np.array_equal(still, pixels(view, data))
    assert np.abs(live - still).mean() < 2


def test_view_without_build_or_update_is_refused():
    class Half(View):
        def build(self):
            pass

    with pytest.raises(TypeError, match="update"):
        Half()


# ---------------------------------------------------------------- the views of all panels


@pytest.fixture(params=PANELS, ids=lambda panel: panel.__name__)
def panel(request):
    return request.param()


@pytest.fixture
def walk(panel, monkeypatch):
    """Return the data of states along a random walk over the controls, ending at the first state."""
    monkeypatch.setattr(panel, "refresh", lambda: None)
    rng = np.random.default_rng(11)
    states = [panel.state, *({**panel.state, **values} for values in panel.presets.values())]
    names = list(panel.controls)
    while len(states) < STEPS:
        control = panel.controls[names[rng.integers(len(names))]]
        options = getattr(control, "_options_full", None)
        if options is None:
            low, high = (int(control.min), int(control.max)) if hasattr(control, "min") else (0, 1)
            options = [("", type(control.value)(value)) for value in range(low, high + 1, getattr(control, "step", 1))]
        control.value = options[rng.integers(len(options))][1]
        states.append(panel.state)
    return [panel.compute(**state) for state in [*states, states[0]]]


def test_artists_are_kept_along_a_walk(panel, walk):
    view = panel.make_view()
    view.still(walk[0])
    before = artists(view)
    for data in walk:
        view.frame(data)
    after = artists(view)
    assert len(after) == len(before)
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_update_returns_the_view(panel, walk):
    view = panel.make_view()
    assert all(view.update(data) is view for data in walk)


def test_pixels_after_a_walk_are_those_of_a_fresh_view(panel, walk):
    walked = panel.make_view()
    for data in walk:
        walked.frame(data)
    for data in walk[:: STEPS // 3]:
        assert np.array_equal(pixels(walked, data), pixels(panel.make_view(), data))


def test_blitting_gives_what_a_whole_drawing_gives(panel, walk):
    """With everything drawn by matplotlib's own `draw`, order of drawing aside, no artist is missing or doubled."""
    view = panel.make_view()
    for data in walk[:3]:
        ours = pixels(view, data).astype(float)
        for artist in view._moving:
            artist.set_animated(False)
        view.redraw_background()
        view.fig.canvas.draw()
        whole = np.asarray(view.fig.canvas.buffer_rgba())[..., :3].astype(float)
        for artist in view._moving:
            artist.set_animated(True)
        view.redraw_background()
        # Ticks and spines lie over or under the moving artists; nothing else may differ.
        assert (np.abs(ours - whole).max(axis=-1) > 64).mean() < 0.01


def test_every_moving_artist_stands_in_its_figure(panel):
    inside = panel.view.fig.findobj()
    assert panel.view._moving
    assert all(any(artist is other for other in inside) for artist in panel.view._moving)
    assert len({id(artist) for artist in panel.view._moving}) == len(panel.view._moving)


def test_picture_fits_a_column_of_the_page(panel):
    width, height = panel.view.size
    assert 600 <= width <= 700
    assert 200 <= height <= 560


def test_text_is_symbols_and_numbers_large_enough(panel, walk):
    """Words stand in the page, where they can be translated and read aloud."""
    panel.view.frame(walk[0])
    texts = [text for text in panel.view.fig.findobj(Text) if text.get_text() and text.get_visible()]
    assert [text.get_text() for text in texts if text.get_fontsize() < theme.TEXT - 1.5] == []
    plain = [re.sub(r"\$[^$]*\$", "", text.get_text()) for text in texts]
    assert [text for text in plain if re.search(r"[^\W\d_]{4,}", text)] == []


def test_nothing_imports_pyplot_or_changes_global_settings():
    script = """
import importlib, pkgutil, sys
import matplotlib
# Reading the backend would make matplotlib choose one, and import pyplot for it.
names = set(matplotlib.rcParams) - {"backend"}
before = {name: matplotlib.rcParams[name] for name in names}
import transformer_parts
for module in pkgutil.walk_packages(transformer_parts.__path__, "transformer_parts."):
    if not module.name.endswith("make_excerpt"):
        importlib.import_module(module.name)
from transformer_parts.explore.catalogue import PANELS
for panel in PANELS:
    panel()
assert "matplotlib.pyplot" not in sys.modules, "pyplot"
assert {name: matplotlib.rcParams[name] for name in names} == before, "rcParams"
print(len(PANELS))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == len(PANELS)


@pytest.mark.parametrize("height", [*range(400, 421), 460, 510])
def test_the_topmost_row_is_part_of_the_background(height):
    class Edge(View):
        size = (120, height)

        def build(self):
            axes = self.fig.add_axes((0, 0, 1, 1))
            axes.set_axis_off()
            axes.set(xlim=(0, 1), ylim=(0, 1))
            (line,) = axes.plot([0, 1], [1, 1], linewidth=6)
            self.line = self.moving(line)

        def update(self, y):
            self.line.set_ydata([y, y])
            return self

    view = Edge()
    view.frame(1.0)
    view.frame(0.5)
    assert np.asarray(view.fig.canvas.buffer_rgba())[0].min() == 255


def test_views_drawn_in_two_threads_do_not_disturb_each_other():
    def data(step):
        return list(range(step + 2)), step + 2

    wanted = [LineView().frame(data(step)) for step in range(40)]
    shared, other = LineView(), LineView()

    def drawn(view):
        return [view.frame(data(step)) == wanted[step] for step in range(40)]

    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(drawn, view) for view in (shared, shared, other, other)]
        assert all(all(result.result()) for result in results)
