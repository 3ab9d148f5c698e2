"""A notebook that is run as a whole."""

import lab
import pytest
from explorer_page import places

pytestmark = pytest.mark.browser


@pytest.mark.of_opened_notebooks
def test_runs_without_an_error_and_panels_take_the_place_of_the_stills(desk, notebook):
    page, log = desk.page(notebook)
    outputs = page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.content.widgets
            .flatMap(cell => cell.model.type === 'code' ? cell.model.outputs.toJSON() : [])"""
    )
    assert outputs
    assert [output for output in outputs if "error" in (output["output_type"], output.get("name"))] == []
    assert [output for output in outputs if output.get("name") == "stderr"] == []

    for place in (place for place in places() if place.notebook == notebook):
        picture = lab.cell(page, place.cell).locator(".tp-panel .tp-front canvas")
        picture.wait_for()
        still = page.locator(f".jp-MarkdownOutput img[src*='{place.panel_class.still}']")
        assert still.count() == 1
        assert not still.is_visible()
        assert picture.get_attribute("aria-label") == place.panel_class.alt == still.get_attribute("alt")
    assert log == []
