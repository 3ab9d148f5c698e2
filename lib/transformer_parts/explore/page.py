"""How panels, live runs and sheets stand on a page: their style sheet, and what is shown where no widget can be."""

from importlib.resources import files

import ipywidgets as widgets


def style_sheet(name: str, still: str = "") -> widgets.HTML:
    """Return a style sheet of this room as a widget that takes no place.

    Parameters
    ----------
    name : str
        Its file.
    still : str
        Path of a still (below the project) that is hidden: it stands on the page for readers who cannot run the cell,
        and what is live takes its place.
    """
    style = files(__package__).joinpath(name).read_text("utf-8")
    if still:
        style += f'\nimg[src*="{still}"] {{ display: none; }}'
    return widgets.HTML(f"<style>{style}</style>", layout={"display": "none"})


def mimebundle(widget: widgets.Widget, words: str, png: bytes | None = None, width: int = 0) -> tuple[dict, dict]:
    """Return a widget's mimebundle with words and, if there is one, a picture for pages that show no widgets.

    Parameters
    ----------
    widget : ipywidgets.Widget
        What is shown where it can be.
    words : str
        What it is, in words; the alt text of the picture, too.
    png : bytes, optional
        The picture.
    width : int
        Its width in CSS pixels.
    """
    bundle = widget._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    data, metadata = dict(data) | {"text/plain": words}, dict(metadata)
    if png is not None:
        data["image/png"] = png
        metadata["image/png"] = {"width": width, "alt": words}
    return data, metadata
