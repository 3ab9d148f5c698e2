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
from transformer_parts.draw.view import CSS_DPI, View
from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS


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
# That a walk over the controls keeps the artists and leaves nothing behind, tests/explore/test_sweep.py has.

every_panel = pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)


@pytest.mark.sweep
@every_panel
def test_blitting_gives_what_a_whole_drawing_gives(kind, begun, sample):
    """With everything drawn by matplotlib's own `draw`, what moves above the rest, no artist is missing or doubled."""
    panel = begun(kind)
    states = [panel.state, *({**panel.state, **values} for values in panel.presets.values())]
    view = panel.make_view()
    for state in sample.of(states, 3 if kind in sample.of(PANELS, len(PANELS) // 3, lambda kind: kind.__name__) else 1):
        ours = pixels(view, panel.compute(**state)).astype(float)
        orders = {artist: artist.get_zorder() for artist in view.moving_artists}
        for place, artist in enumerate(orders):
            artist.set_animated(False)
            artist.set_zorder(1000 + place)
        view.redraw_background()
        view.fig.canvas.draw()
        whole = np.asarray(view.fig.canvas.buffer_rgba())[..., :3].astype(float)
        for artist in view._moving:
            artist.set_animated(True)
            artist.set_zorder(orders[artist])
        view.redraw_background()
        # The thinnest marker has 250 pixels.
        assert np.count_nonzero(np.abs(ours - whole).max(axis=-1) > 64) < 50


@every_panel
def test_every_moving_artist_stands_in_its_figure(kind, begun):
    view = begun(kind).view
    inside = view.fig.findobj()
    assert view._moving
    assert all(any(artist is other for other in inside) for artist in view._moving)
    assert len({id(artist) for artist in view._moving}) == len(view._moving)


@every_panel
def test_picture_fits_a_column_of_the_page(kind, begun):
    width, height = begun(kind).view.size
    assert 600 <= width <= 700
    assert 200 <= height <= 560


@every_panel
def test_text_is_symbols_and_numbers_large_enough(kind, begun):
    """Words stand in the page, where they can be translated and read aloud."""
    panel = begun(kind)
    panel.frame()
    texts = [text for text in panel.view.fig.findobj(Text) if text.get_text() and text.get_visible()]
    assert [text.get_text() for text in texts if text.get_fontsize() < theme.TEXT - 1.5] == []
    plain = [re.sub(r"\$[^$]*\$", "", text.get_text()) for text in texts]
    assert [text for text in plain if re.search(r"[^\W\d_]{4,}", text)] == []


# ---------------------------------------------------------------- no text is cut off

#: A text's box has a little room around its letters.
CSS_PIXELS_OUTSIDE = 1.0


def texts_cut_off(view: View, data: object) -> dict[str, list[int]]:
    """Return the texts that reach beyond the figure, with the edges of their boxes in CSS pixels."""
    drawn: list[Text] = []
    with pytest.MonkeyPatch.context() as patch:
        draw = Text.draw
        patch.setattr(Text, "draw", lambda text, renderer: (drawn.append(text), draw(text, renderer))[1])
        view.redraw_background()
        view.frame(data)
    found, unit = {}, view.fig.dpi / CSS_DPI
    whole = view.fig.bbox.padded(CSS_PIXELS_OUTSIDE * unit)
    for text in drawn:
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent()
            if not (whole.x0 <= box.x0 and whole.y0 <= box.y0 and box.x1 <= whole.x1 and box.y1 <= whole.y1):
                found[text.get_text()] = [round(edge / unit) for edge in box.extents]
    return found


@every_panel
def test_every_text_lies_inside_its_figure(kind, begun):
    panel = begun(kind)
    for state in (panel.state, *({**panel.state, **values} for values in panel.presets.values())):
        assert texts_cut_off(panel.view, panel.compute(**state)) == {}, state


@pytest.mark.parametrize("kind", LIVE_RUNS, ids=lambda kind: kind.__name__)
def test_every_text_of_a_live_run_lies_inside_its_figure(kind, begun):
    assert texts_cut_off(begun(kind).view, begun(kind).shown) == {}


@pytest.mark.parametrize(("left", "is_cut"), [(0.3, False), (0.2, True)])
def test_a_y_label_that_is_cut_off_is_found(left, is_cut):
    class Labelled(LineView):
        size = (240, 160)

        def build(self):
            super().build()
            self.axes.set_position((left, 0.3, 0.6, 0.5))
            self.axes.set_ylabel("$s$")

    assert list(texts_cut_off(Labelled(), ([0, 1], 1))) == ["$s$"] * is_cut


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
