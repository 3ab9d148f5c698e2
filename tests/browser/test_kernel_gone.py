"""Panels that outlive their kernel: after a restart nothing they show follows the hand, and they say so in words."""

import lab
import pytest

pytestmark = pytest.mark.browser

SAID = "sheet => getComputedStyle(sheet, '::before').content"
# What ipywidgets draws beside each part of a dead widget would push the parts about.
CHAINS = """sheet => [...sheet.querySelectorAll(".jupyter-widgets-disconnected")].filter(
    part => getComputedStyle(part, "::before").display !== "none").length"""


@pytest.mark.parametrize(
    ("notebook", "kind"),
    [("notebooks/en/15_stability.ipynb", "tp-panel"), ("notebooks/en/17_interview.ipynb", "tp-interview")],
)
def test_a_panel_whose_kernel_is_gone_says_so(desk, notebook, kind):
    page, _ = desk.page(notebook)
    sheet = lab.cell(page, 4).locator(f".{kind}")
    sheet.wait_for()
    assert "kernel" not in sheet.evaluate(SAID)
    height = sheet.bounding_box()["height"]
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_function(
        f"() => document.querySelector('.{kind}')?.matches('.jupyter-widgets-disconnected')", timeout=60_000
    )
    try:
        assert "run the notebook again" in sheet.evaluate(SAID)
        assert sheet.evaluate(CHAINS) == 0
        assert height < sheet.bounding_box()["height"] < height + 60
    finally:
        desk.clear()
