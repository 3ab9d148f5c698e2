"""The panels of measured long context: what they show is what the recordings hold; the costs are the maths room's."""

import re
from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.explore.long_context import (
    KINDS,
    NAMES,
    LiveExtension,
    LongContextCosts,
    LongContextLoss,
    LongContextRetrieval,
)
from transformer_parts.runs import long_context, long_context_small, passkey, recorded


def table(panel) -> dict[str, str]:
    rows = re.findall(r"<tr[^>]*><th[^>]*>(.*?)</th><td>(.*?)</td>", panel.readout.value)
    return {re.sub(r"<[^>]*>", "", label): value.replace("\N{NO-BREAK SPACE}", " ") for label, value in rows}


@pytest.fixture(autouse=True)
def _logged(logged):
    """No panel may log."""


def stopped(monkeypatch, keep, name):
    """Let panels see a recording from which a measurement that was stopped lacks all but the series kept."""
    whole = recorded.load(name)
    monkeypatch.setattr(recorded, "load", lambda _name: replace(whole, series=keep(whole.series)))


def test_losses_are_those_of_the_recording():
    panel = LongContextLoss()
    series = recorded.load(long_context.NAME).series
    assert set(NAMES) == set(long_context.METHODS)
    offered = [method for _, method in panel.controls["method"].options]
    assert offered == [name for name in NAMES if series.get(name)]
    for method in offered:
        data = panel.compute(method=method, beside="plain", window="window 0", relative=False)
        for name in offered:
            np.testing.assert_array_equal(data.losses[name], series[name]["window 0"])


def test_the_table_holds_the_short_context_regression():
    panel = LongContextLoss()
    panel.set(**panel.presets["Short texts"])
    series = recorded.load(long_context.NAME).series
    yarn, plain = (series[name]["window 0"][:8].mean() for name in ("yarn", "plain"))
    assert table(panel)["positions up to 8,192"] == f"{yarn:.3f}, {plain:.3f}, {yarn - plain:+.3f}"


def test_the_farthest_block_is_named_whichever_is_worse():
    panel = LongContextLoss()
    for method, beside in (("yarn", "plain"), ("plain", "yarn")):
        panel.set(method=method, beside=beside)
        series = recorded.load(long_context.NAME).series
        apart = np.abs(series["yarn"]["window 0"] - series["plain"]["window 0"])
        row = table(panel)["largest difference beyond: block from"]
        assert row == f"{1024 * (8 + apart[8:].argmax()):,}"


def test_of_a_stopped_measurement_what_there_is_is_offered(monkeypatch):
    made = np.linspace(2, 3, 16)
    series = {"plain": {"window 0": made, "window 5": made}, "yarn": {"window 0": made + 1}, "restarted": {}}
    stopped(monkeypatch, lambda _: series, long_context.NAME)
    panel = LongContextLoss()
    assert [method for _, method in panel.controls["method"].options] == ["plain", "yarn"]
    assert "window" not in panel.controls
    assert list(panel.presets) == ["YaRN", "Short texts"]
    for values in panel.presets.values():
        panel.set(**values)
        assert panel.error is None


def test_windows_that_all_methods_read_are_offered(monkeypatch):
    made = np.linspace(2, 3, 16)
    windows = {"window 0": made, "window 5": made + 1}
    stopped(monkeypatch, lambda _: dict.fromkeys(NAMES, windows), long_context.NAME)
    panel = LongContextLoss()
    assert panel.controls["window"].options == (("0 to 16,384", "window 0"), ("81,920 to 98,304", "window 5"))
    assert list(panel.presets) == list(LongContextLoss.presets)
    panel.controls["window"].value = "window 5"
    np.testing.assert_array_equal(panel.compute(**panel.state).losses["restarted"], made + 1)


def test_retrieval_is_the_diagonal_of_the_recorded_tables():
    panel = LongContextRetrieval()
    series = recorded.load(passkey.NAME).series
    data = panel.compute(kind="8 numbers", length=1024)
    cases = [series[f"1024 tokens, 8 doors, 1 hops, seed {seed}"] for seed in (0, 1)]
    wanted = np.concatenate([np.diag(case["plain"]["one hop"]) for case in cases])
    np.testing.assert_array_equal(data.plain, wanted)
    np.testing.assert_array_equal(data.depths, np.concatenate([case["depths"] for case in cases]))
    best = [case["yarn"]["one hop"].argmax(-1) == np.arange(8) for case in cases]
    np.testing.assert_array_equal(data.chosen[1], np.concatenate(best))
    assert data.by_length["plain"][list(data.lengths).index(1024)] == pytest.approx(wanted.mean())
    away = [np.where(np.eye(8, dtype=bool), np.nan, case["plain"]["one hop"]) for case in cases]
    np.testing.assert_allclose(data.others[0], np.nanmean(np.concatenate(away), axis=1))


def cases(*wanted):
    """Return made tables for (length, doors, hops)."""
    rng, series = np.random.default_rng(3), {}
    for length, doors, hops in wanted:
        kinds = ("one hop",) if hops == 1 else ("one hop", "two hops")
        tables = {kind: -rng.gamma(2.0, 1.0, (doors, doors)) for kind in kinds}
        name = f"{length} tokens, {doors} doors, {hops} hops, seed 0"
        series[name] = {"depths": np.linspace(0.1, 0.9, doors), "plain": tables, "yarn": tables}
    return series


def test_kind_and_length_are_kept_to_what_was_measured(monkeypatch):
    made = cases((1024, 8, 1), (2048, 8, 1), (4096, 8, 1), (2048, 4, 2), *((4096, doors, 1) for doors in (1, 2, 4)))
    stopped(monkeypatch, lambda _: made, passkey.NAME)
    panel = LongContextRetrieval()
    assert panel.state == {"kind": "8 numbers", "length": 4096}
    assert set(panel.presets) == {"8 numbers in 1K", "8 numbers in 4K", "one hop", "two hops"}
    panel.controls["length"].value = 1024
    panel.controls["kind"].value = "2 numbers"
    assert panel.state["length"] == 4096
    panel.controls["length"].value = 1024
    assert panel.state["kind"] == "8 numbers"
    for kind in KINDS:
        panel.controls["kind"].value = kind
        assert panel.error is None
        alone = kind == "1 number"
        assert np.isnan(panel.compute(**panel.state).others).any() == alone
        assert table(panel)["as trained"].endswith("—") == alone


def test_a_first_length_alone_is_enough(monkeypatch):
    stopped(monkeypatch, lambda _: cases((1024, 8, 1)), passkey.NAME)
    panel = LongContextRetrieval()
    assert panel.state == {"kind": "8 numbers", "length": 1024}
    assert list(panel.presets) == ["8 numbers in 1K"]


def test_costs_presets_give_the_worked_numbers():
    panel = LongContextCosts()

    def cache(label):
        panel.press([*panel.presets].index(label))
        return table(panel)["cache of one sequence"]

    assert [cache(label) for label in panel.presets] == [
        "0.500 GiB",
        "16.000 GiB",
        "64.000 GiB",
        "4.000 GiB",
        "0.500 GiB",
    ]
    panel.press([*panel.presets].index("at 128K"))
    rows = table(panel)
    assert rows["the prompt, at least"] == "6.47 s"
    assert rows["one new token, at least"] == "9.923 ms"


def test_a_live_run_trains_and_tries_every_method(monkeypatch):
    monkeypatch.setattr(long_context_small, "STEPS", 12)
    monkeypatch.setattr(long_context_small, "LENGTHS", (64, 128, 256, 512))
    run = LiveExtension()
    assert not run.running
    run.start()
    assert run.wait(60)
    assert run.error is None
    assert len([record for record in run.records if len(record) == 2]) == 12
    shown = run.shown
    assert all(np.isfinite(values).all() for values in shown.accuracy.values())
    series = recorded.load(long_context_small.NAME).series["seed 0"]
    for name, values in shown.recorded.items():
        np.testing.assert_array_equal(values, series[name]["accuracy"])
