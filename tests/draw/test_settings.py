"""Our pictures are drawn under matplotlib's defaults, and the reader's plots under the reader's settings.

`test_stills` runs under settings of several readers.
"""

import io
import threading

import matplotlib
import pytest
from matplotlib import pyplot

from transformer_parts.draw.settings import drawing
from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.norms import NormBars

TIMES = 200


def plot() -> bytes:
    """Return a reader's plot, in the reader's style."""
    with matplotlib.style.context("dark_background"):
        figure, axes = pyplot.subplots(figsize=(2, 1.5), dpi=50)
        axes.plot([1, 3, 2], label="$x^2$")
        axes.legend()
        file = io.BytesIO()
        figure.savefig(file, format="png")
        pyplot.close(figure)
    return file.getvalue()


def test_inside_the_defaults_hold_and_outside_nothing_changes():
    with matplotlib.rc_context({"lines.linewidth": 7.0}):
        seen = []

        @drawing
        def inside():
            other = threading.Thread(target=lambda: seen.append(matplotlib.rcParams["lines.linewidth"]))
            other.start()
            other.join()
            return matplotlib.rcParams["lines.linewidth"]

        assert inside() == matplotlib.rcParamsDefault["lines.linewidth"] != 7.0
        assert seen == [7.0]
        assert matplotlib.rcParams["lines.linewidth"] == 7.0
        assert matplotlib.rcParams.copy()["lines.linewidth"] == 7.0


def test_an_error_inside_gives_the_settings_back():
    with matplotlib.rc_context({"lines.linewidth": 7.0}):
        with pytest.raises(ZeroDivisionError):
            drawing(lambda: 1 / 0)()
        assert matplotlib.rcParams["lines.linewidth"] == 7.0


def test_pictures_and_plots_that_are_drawn_at_once_both_stay_as_they_are():
    panel = NormBars()
    data = panel.compute(**panel.state)
    ours, theirs = panel.view.still(data), plot()
    stop, drawn = threading.Event(), set()

    def draw():
        while not stop.is_set():
            panel.view.redraw_background()
            drawn.add(panel.view.still(data))

    thread = threading.Thread(target=draw)
    thread.start()
    plots = {plot() for _time in range(TIMES)}
    stop.set()
    thread.join()
    assert plots == {theirs}
    assert drawn == {ours}


STYLES = ("dark_background", "ggplot", "fivethirtyeight", "grayscale", "seaborn-v0_8-poster", "Solarize_Light2")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", [*PANELS, *LIVE_RUNS], ids=lambda kind: kind.__name__)
def test_pictures_are_the_same_under_any_style(kind, sample):
    """Both the first picture and one after the buttons; all explorers and styles with --everything."""
    stills = []
    for style in ("default", *(STYLES if sample.everything else sample.of(STYLES, 1))):
        with matplotlib.style.context(style):
            made = kind()
            stills.append([made.view.still(made.shown)])
            if kind in PANELS:
                made.set(**list(made.presets.values())[-1])
                stills[-1].append(made.view.still(made.shown))
    assert all(pictures == stills[0] for pictures in stills)


@pytest.mark.parametrize("format", ["pdf", "ps", "svg"])
def test_a_reader_may_save_plots_in_any_format(format):
    figure, axes = pyplot.subplots()
    axes.set_title("$x^2$")
    file = io.BytesIO()
    figure.savefig(file, format=format)
    pyplot.close(figure)
    assert len(file.getvalue()) > 1000
