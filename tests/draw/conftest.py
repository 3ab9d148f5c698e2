"""A picture that warns (a missing glyph, a bad symbol) fails its test."""

import ipywidgets as widgets
import pytest


@pytest.fixture(autouse=True)
def _nothing_is_logged(logged):
    return


@pytest.fixture(autouse=True)
def _panels_are_let_go():
    """Widgets live until they are closed, and with each panel's its canvas."""
    yield
    widgets.Widget.close_all()
