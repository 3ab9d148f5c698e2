"""The one door to matplotlib's settings: our pictures are drawn under its defaults, the reader's plots under theirs.

``rcParams`` belongs to the whole process.  Changing it during a drawing, as ``rc_context`` does, would change what
other threads draw at that moment.  So no value is changed.  Instead the object gets a class that gives matplotlib's
defaults to code that runs inside of `drawing`, and the reader's values to everybody else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock

import matplotlib

_ours: ContextVar[bool] = ContextVar("transformer_parts_drawing", default=False)

# JupyterLab runs the callbacks of sliders in another thread than the cells, and matplotlib's fonts, which all figures
# share, bear one thread at a time.
_lock = RLock()


class _Settings(matplotlib.RcParams):
    """Settings whose values are matplotlib's defaults inside of `drawing`."""

    def _get(self, key):
        return matplotlib.rcParamsDefault._get(key) if _ours.get() else super()._get(key)


matplotlib.rcParams.__class__ = _Settings


@contextmanager
def drawing() -> Iterator[None]:
    """Make or draw figures one thread at a time, under matplotlib's own defaults."""
    with _lock:
        token = _ours.set(True)
        try:
            yield
        finally:
            _ours.reset(token)
