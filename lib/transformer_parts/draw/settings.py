"""The one door to matplotlib's settings: our pictures are drawn under its defaults, the reader's plots under theirs.

``rcParams`` belongs to the whole process.  Changing it during a drawing, as ``rc_context`` does, would change what
other threads draw at that moment.  So no value is changed.  Instead the object gets a class that gives matplotlib's
defaults to code that runs inside of `drawing`, and the reader's values to everybody else.

Fonts are the other thing that all drawings share.  While a glyph is read from its file, Python may let another thread
run, whose glyph spoils this one in FreeType's common memory (seen: wrong pixels, "invalid outline").  So whoever draws
text with Agg, in whatever thread, holds the lock of `drawing`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import RLock

import matplotlib
from matplotlib.backends.backend_agg import RendererAgg

_ours: ContextVar[bool] = ContextVar("transformer_parts_drawing", default=False)

# JupyterLab runs the callbacks of sliders in another thread than the cells.
_lock = RLock()


class _Settings(matplotlib.RcParams):
    """Settings whose values are matplotlib's defaults inside of `drawing`."""

    def _get(self, key):
        return matplotlib.rcParamsDefault._get(key) if _ours.get() else super()._get(key)


def _alone(method: Callable) -> Callable:
    @wraps(method)
    def run(*arguments, **options):
        with _lock:
            return method(*arguments, **options)

    return run


matplotlib.rcParams.__class__ = _Settings
# If these methods were renamed, the test that draws in two threads at once would fail.
for _name in ("draw_text", "draw_mathtext", "get_text_width_height_descent"):
    setattr(RendererAgg, _name, _alone(getattr(RendererAgg, _name)))


@contextmanager
def drawing() -> Iterator[None]:
    """Make or draw figures one thread at a time, under matplotlib's own defaults."""
    with _lock:
        token = _ours.set(True)
        try:
            yield
        finally:
            _ours.reset(token)
