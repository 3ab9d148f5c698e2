"""The committed stills are what the explorers show when they begin."""

import io
import re
import zlib
from pathlib import Path

import matplotlib
import moving_picture
import numpy as np
import pytest
import stills
from cycler import cycler
from PIL import Image

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.rope import RopePlane

PROJECT = Path(__file__).parents[2]
# Root mean square of the differences of pixels, of 255 levels.  The same matplotlib draws the same pixels; another
# processor may round an edge differently.  One changed number in a picture makes a difference ten times as large.
TOLERANCE = 1.0


LOCK = (PROJECT / "requirements.lock").read_text("utf-8")
LOCKED = re.search(r"^matplotlib==(\S+)", LOCK, re.MULTILINE)[1]
of_the_locked_version = pytest.mark.skipif(
    matplotlib.__version__ != LOCKED,
    reason=f"stills are compared with the matplotlib of requirements.lock, {LOCKED}; here is {matplotlib.__version__}",
)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)


def drawn(panel) -> np.ndarray:
    """Return the pixels of a panel's present state, before any encoding."""
    panel.frame()
    return np.asarray(panel.view.fig.canvas.buffer_rgba())[..., :3].astype(float)


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sqrt(((one - other) ** 2).mean()))


# What a reader may have set before the first panel is made; no picture may depend on it.
READERS = (
    {"axes.facecolor": "black", "text.color": "white", "axes.labelcolor": "white", "legend.facecolor": "inherit"},
    {"font.family": "no such font", "font.size": 21, "lines.linewidth": 9, "axes.grid": True, "image.cmap": "gray"},
    {"text.usetex": True, "mathtext.fontset": "cm", "axes.unicode_minus": False, "axes.prop_cycle": cycler(color="k")},
    {"path.simplify": False, "lines.antialiased": False, "xtick.direction": "in", "axes.xmargin": 0.5, "hist.bins": 3},
)


@pytest.fixture(autouse=True)
def _settings_of_a_reader(request):
    """Each test is run under the settings of another reader."""
    with matplotlib.rc_context(READERS[zlib.crc32(request.node.name.encode()) % len(READERS)]):
        yield


@pytest.fixture(params=PANELS, ids=lambda panel: panel.__name__)
def panel(request):
    return request.param()


@pytest.fixture
def committed(panel):
    return pixels((PROJECT / panel.still).read_bytes())


@of_the_locked_version
def test_still_is_the_panel_as_it_begins(panel, committed, tmp_path):
    now = drawn(panel)
    assert now.shape == committed.shape
    found = difference(now, committed)
    if found > TOLERANCE:
        Image.fromarray(np.abs(now - committed).astype(np.uint8)).save(tmp_path / "difference.png")
    assert found <= TOLERANCE, f"`make stills` draws {panel.still} differently; see {tmp_path}/difference.png"


@of_the_locked_version
@pytest.mark.parametrize("kind", LIVE_RUNS, ids=lambda kind: kind.__name__)
def test_still_is_the_live_run_before_it_is_started(kind):
    committed = pixels((PROJECT / kind.still).read_bytes())
    assert difference(pixels(stills.still(kind())), committed) <= TOLERANCE


@of_the_locked_version
def test_tolerance_tells_presets_from_the_beginning(panel, committed):
    """Of all presets at least one is another picture than the first, and differs from it by far more than allowed."""

    def differs(preset: str) -> bool:
        panel.set(**panel.presets[preset])
        return difference(drawn(panel), committed) > 2 * TOLERANCE

    assert any(map(differs, panel.presets))


def test_every_figure_belongs_to_a_panel():
    figures = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / "figures").iterdir() if path.is_file()}
    assert figures == {panel.still for panel in (*PANELS, *LIVE_RUNS)} | {"figures/moving.webp"}


@of_the_locked_version
def test_the_moving_picture_of_the_readme_shows_the_walk():
    """It is compressed with loss: each frame is nearer to its own state than to any other that looks different."""
    assert moving_picture.PICTURE.stat().st_size < 1_000_000
    panel = RopePlane()
    wanted = [np.asarray(moving_picture.frame(panel, state), float) for state, _ms in moving_picture.states()]
    with Image.open(moving_picture.PICTURE) as moving:
        assert moving.n_frames == len(wanted)
        for number in range(0, moving.n_frames, 7):
            moving.seek(number)
            shown = np.asarray(moving.convert("RGB"), float)
            assert np.argmin([difference(shown, one) for one in wanted]) == number


def test_stills_are_small_enough_for_git():
    assert [p.still for p in (*PANELS, *LIVE_RUNS) if (PROJECT / p.still).stat().st_size > 400_000] == []


def test_command_writes_the_stills(monkeypatch, tmp_path, capsys):
    some = PANELS[:2]
    monkeypatch.setattr(stills, "PANELS", some)
    monkeypatch.setattr(stills, "LIVE_RUNS", LIVE_RUNS[:1])
    monkeypatch.setattr(stills, "PROJECT", tmp_path)
    stills.main([])
    assert capsys.readouterr().out.split() == [kind.still for kind in (*some, LIVE_RUNS[0])]
    for kind in some:
        written = pixels((tmp_path / kind.still).read_bytes())
        assert np.array_equal(written, drawn(kind()))


def test_command_writes_one_still_by_its_name(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(stills, "PROJECT", tmp_path)
    stills.main([PANELS[1].__name__])
    assert capsys.readouterr().out.split() == [PANELS[1].still]
    with pytest.raises(SystemExit):
        stills.main(["NoSuchPanel"])
    assert "got NoSuchPanel, want some of Reordering, " in capsys.readouterr().err
