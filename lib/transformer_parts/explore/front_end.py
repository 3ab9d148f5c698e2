"""What a panel has in the browser beyond core ipywidgets: frames shown during a drag, names for its controls.

Everything works without it: where the front end cannot be loaded (it is an anywidget, which some hosts take from the
network) its place on the page is hidden, and the panel goes through the kernel for each picture.
"""

import re
from importlib.resources import files

import anywidget
from traitlets import Dict, Int, List, Unicode


def _joined(*names: str) -> str:
    """Return modules of ``front/`` as the one module that an anywidget is made of."""
    texts = [files(__package__).joinpath("front", name).read_text("utf-8") for name in names]
    return "\n".join(re.sub(r"^import .*\n|^export (?!default)", "", text, flags=re.M) for text in texts)


class FrontEnd(anywidget.AnyWidget):
    """The browser's part of a panel, which finds the panel's widgets by their model ids."""

    _esm = _joined("frames.js", "hold.js", "names.js", "panel.js")

    #: Control's name → model id, in the order of the page.
    controls = Dict(value_trait=Unicode()).tag(sync=True)
    picture = Unicode().tag(sync=True)
    readout = Unicode().tag(sync=True)
    #: Model id of the play button ("" if there is none) and the name of the control it moves.
    play = Unicode().tag(sync=True)
    plays = Unicode().tag(sync=True)
    #: Names of the three buttons of the player, in its order.
    play_names = List(Unicode()).tag(sync=True)
    #: How often a button of the panel was pressed.
    presses = Int().tag(sync=True)
