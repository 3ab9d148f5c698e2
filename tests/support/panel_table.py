"""What the tests of single panels do to a panel and read from its table."""

from transformer_parts.explore.panel import Panel


def shown(panel: Panel, label: str) -> str:
    """Return the value beside a label; the same text must stand on the page."""
    (value,) = [row.value for row in panel.rows(panel.compute(**panel.state)) if row.label == label]
    assert f"<td>{value}</td>" in panel.readout.value.replace("\N{NO-BREAK SPACE}", " ")
    return value


def after(panel: Panel, preset: str) -> Panel:
    """Return the panel after one of its presets."""
    panel.set(**panel.presets[preset])
    assert panel.error is None
    return panel
