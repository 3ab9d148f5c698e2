"""The one door to matplotlib's settings: our pictures are drawn under its defaults, the reader's plots under theirs.

``rcParams`` belongs to the whole process.  Changing it during a drawing, as ``rc_context`` does, would change what
other threads draw at that moment.  So no value is changed.  Instead the object gets a class that gives matplotlib's
defaults to code that runs inside of `drawing`, and the reader's values to everybody else.

Fonts are the other thing that all drawings share.  matplotlib reads a glyph from the font's file while it draws; Python
may then let another thread run, whose glyph spoils this one in FreeType's common memory (seen: wrong pixels, "invalid
outline").  From memory a glyph is read without such a pause, so from here on fonts are opened in memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from threading import RLock

import matplotlib
from matplotlib import font_manager, ft2font

_ours: ContextVar[bool] = ContextVar("transformer_parts_drawing", default=False)

# JupyterLab runs the callbacks of sliders in another thread than the cells, and matplotlib's fonts, which all figures
# share, bear one thread at a time.
_lock = RLock()


class _Settings(matplotlib.RcParams):
    """Settings whose values are matplotlib's defaults inside of `drawing`."""

    def _get(self, key):
        return matplotlib.rcParamsDefault._get(key) if _ours.get() else super()._get(key)


class _FontFile(BytesIO):
    """A font in memory, under its file's name."""

    def __init__(self, path):
        super().__init__(Path(path).read_bytes())
        self._path = str(path)

    def __str__(self):
        return self._path  # which FT2Font.fname gives: other backends look for the file


def _in_memory(open_font):
    return lambda font, *arguments, **options: open_font(
        font if hasattr(font, "read") else _FontFile(font), *arguments, **options
    )


matplotlib.rcParams.__class__ = _Settings
# font_manager opens every font as `ft2font.FT2Font` (a type that cannot be derived from) and keeps it.  Were the names
# changed, the test that draws in two threads at once would fail.
ft2font.FT2Font = _in_memory(ft2font.FT2Font)
font_manager._get_font.cache_clear()


@contextmanager
def drawing() -> Iterator[None]:
    """Make or draw figures one thread at a time, under matplotlib's own defaults."""
    with _lock:
        token = _ours.set(True)
        try:
            yield
        finally:
            _ours.reset(token)
