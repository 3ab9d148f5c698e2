"""The page's part of a panel: it draws controls, picture and table, and shows frames while a control moves.

Everything works without it: where it cannot be loaded (it is an anywidget, which some hosts take from the network) the
widgets of the panel stay on the page, and the panel goes through the kernel for each picture.
"""

import re
from importlib.resources import files

import anywidget
from traitlets import Dict, Int, List, Unicode


def joined(*names: str) -> str:
    """Return modules of ``front/`` as the one module that an anywidget is made of."""
    texts = [files(__package__).joinpath("front", name).read_text("utf-8") for name in names]
    return "\n".join(re.sub(r"^import .*\n|^export (?!default)", "", text, flags=re.M) for text in texts)


_SHARED = ("drawing.js", "controls.js", "over.js", "explorer.js", "session.js")
#: Modules of a page without a kernel.
PAGE = (*_SHARED, "page.js")


class FrontEnd(anywidget.AnyWidget):
    """What the page knows of a panel from the beginning; the rest comes in messages (see ``frames``)."""

    _esm = joined(*_SHARED, "panel.js")

    #: What `ranges.described` says of each control, in the order of the page.
    controls = List(Dict()).tag(sync=True)
    #: Labels of the buttons; the last one brings the first state back.
    presets = List(Unicode()).tag(sync=True)
    #: Name of the control that the play button moves ("" if there is none), and milliseconds of a step.
    play = Unicode().tag(sync=True)
    interval = Int().tag(sync=True)
    #: Width and height of the picture in CSS pixels, and pixels of its drawings for each of them.
    size = Dict().tag(sync=True)
    #: Handles of the picture in the order of their grips: name, label, controls, and which directions count.
    handles = List(Dict()).tag(sync=True)
    #: What to look for at each preset ("" if nothing is said).
    guide = List(Unicode()).tag(sync=True)
    #: Which of the parts that move show what, by the names that rows and terms have for it.
    shows = Dict().tag(sync=True)
    #: Names of the controls that are always seen.
    primary = List(Unicode()).tag(sync=True)
    #: Accessible name of the picture.
    alt = Unicode().tag(sync=True)
    #: What the page itself says, by the names that its modules have for it.
    words = Dict(value_trait=Unicode()).tag(sync=True)
