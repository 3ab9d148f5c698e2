"""The one door to matplotlib's settings: our pictures are drawn under its defaults, the reader's plots under theirs.

``rcParams`` belongs to the whole process.  Changing it during a drawing, as ``rc_context`` does, would change what
other threads draw at that moment.  So no value is changed.  Instead the object gets a class that gives matplotlib's
defaults to code that runs inside of `drawing`, and the reader's values to everybody else.

Fonts are the other thing that drawings share: matplotlib keeps a formula with the font objects of the thread that drew
it first, and FreeType has one memory for all.  Two threads that draw text at once spoil each other's glyphs (seen: a
letter in the corner, "invalid outline").  So one thread at a time draws or measures text,
the reader's threads included.
"""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import wraps
from threading import RLock

import matplotlib
from matplotlib.offsetbox import TextArea
from matplotlib.text import Text

_ours: ContextVar[bool] = ContextVar("transformer_parts_drawing", default=False)

# JupyterLab runs the callbacks of sliders in another thread than the cells.  A text has a lock of
# its own, so that a reader's plot does not wait for a whole picture of ours.
_lock, _text_lock = RLock(), RLock()


class _Settings(matplotlib.RcParams):
    """Settings whose values are matplotlib's defaults inside of `drawing`."""

    def _get(self, key):
        return matplotlib.rcParamsDefault._get(key) if _ours.get() else super()._get(key)


def _alone(method: Callable) -> Callable:
    @wraps(method)
    def run(*arguments, **options):
        with _text_lock:
            return method(*arguments, **options)

    return run


matplotlib.rcParams.__class__ = _Settings
# If these methods no longer were where matplotlib draws text, the test that draws in two threads at once would fail.
for _owner, _name in ((Text, "draw"), (Text, "get_window_extent"), (TextArea, "get_bbox")):
    setattr(_owner, _name, _alone(getattr(_owner, _name)))


def drawing(method: Callable) -> Callable:
    """Have a function that makes or draws figures do so one thread at a time, under matplotlib's own defaults.

    An interrupt may come at any moment, so nothing has to be set back: what is set in a copied context goes with it.
    """

    @wraps(method)
    def run(*arguments, **options):
        with _lock:
            return copy_context().run(_as_ours, method, *arguments, **options)

    return run


def _as_ours(method: Callable, *arguments, **options):
    _ours.set(True)
    return method(*arguments, **options)
