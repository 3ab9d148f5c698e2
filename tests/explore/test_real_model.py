"""The panels over a passage: presets give the worked numbers, a reading is shared, and its errors are told."""

import re

import numpy as np
import pytest

from transformer_parts.explore.real_model import (
    ENTROPY,
    OF_QUERY,
    Reading,
    RealModelHeads,
    RealModelParts,
    RealModelStream,
)
from transformer_parts.maths.attention import entropy
from transformer_parts.models import weights
from transformer_parts.models.passage import Passage, load_passage

PANELS = (RealModelStream, RealModelHeads, RealModelParts)


def table(panel) -> dict[str, str]:
    rows = re.findall(r"<tr[^>]*><th[^>]*>(.*?)</th><td>(.*?)</td>", panel.readout.value)
    return {re.sub(r"<[^>]*>", "", label): value.replace("\N{NO-BREAK SPACE}", " ") for label, value in rows}


def press(panel, label):
    panel.press([*panel.presets].index(label))
    assert panel.error is None
    return table(panel)


@pytest.fixture(autouse=True)
def _logged(logged):
    """No panel may log."""


def test_the_stream_presets_give_the_worked_numbers():
    panel = RealModelStream()
    rows = press(panel, "“harbour”, the second time")
    assert rows["had the model ended here, it would go on with"].startswith("“ harbour” 0.658, ")
    assert rows["the token that comes next, and its probability here"] == "“ harbour”, 0.657871"
    assert rows["its loss, −ln p, after the last layer"] == "0.419"
    rows = press(panel, "“harbour”, the first time")
    assert rows["the token that comes next, and its probability here"] == "“ harbour”, 0.005059"
    rows = press(panel, "One layer earlier")
    assert rows["had the model ended here, it would go on with"].startswith("“ one” ")
    assert rows["it does go on with, after the last layer"].startswith("“ harbour” 0.658")
    panel.set(token=0, layer=12)
    rows = table(panel)
    assert rows["its largest channel, and the size there"] == "507, 22552.0"
    assert rows["the stream's RMS before this layer; the median of all tokens".replace("'", "&#x27;")] == "946.35; 6.22"


def test_the_last_token_has_nothing_after_it():
    panel = RealModelStream()
    panel.set(token=19, layer=30)
    assert not any("comes next" in label or "loss" in label for label in table(panel))


def test_the_heads_presets_give_the_worked_numbers():
    panel = RealModelHeads()
    rows = press(panel, "The previous token")
    assert rows["their score, the sum of the clocks"] == "2.284"
    assert rows["attention weight of this key"] == "0.615"
    rows = press(panel, "The same words before")
    assert rows["the query looks most at"] == "5 “ harbour”, 0.857"
    assert rows["key (of kv head 1)"] == "5 “ harbour”"
    rows = press(panel, "The attention sink")
    assert float(rows["the head's weight on token 0, mean of later queries".replace("'", "&#x27;")]) > 0.8
    rows = press(panel, "Before there is a sink")
    assert float(rows["the head's weight on token 0, mean of later queries".replace("'", "&#x27;")]) < 0.3


def test_a_key_is_never_later_than_its_query():
    panel = RealModelHeads()
    panel.controls["query"].value = 4
    assert panel.state["key"] == 4
    panel.controls["key"].value = 9
    assert panel.state["query"] == 9


def test_what_is_shown_of_all_heads():
    panel, passage = RealModelHeads(), load_passage()
    normal = passage.weights / passage.weights.sum(-1, keepdims=True)
    state = panel.state
    shown = panel.compute(**state | {"shown": ENTROPY}).every_head
    np.testing.assert_allclose(shown, entropy(normal).mean(-1))
    shown = panel.compute(**state | {"shown": OF_QUERY}).every_head
    np.testing.assert_allclose(shown, entropy(normal)[:, :, state["query"]])


def test_the_parts_presets_give_the_worked_numbers():
    panel = RealModelParts()
    costs = {label: float(press(panel, label)["what it costs"]) for label in panel.presets}
    assert costs == {"No RoPE": 1.872, "The wrong layout": 1.245, "LayerNorm for RMSNorm": 0.197, "No gate": 17.94}
    rows = press(panel, "No RoPE")
    assert rows["mean loss as trained, in nats a token"] == "3.820"
    assert rows["its loss as trained, and broken"] == "0.419, 5.815"


# the reading


def shorter(passage: Passage, length: int) -> Passage:
    """The first tokens of a passage, as the model would read them alone."""
    cut = {name: getattr(passage, name)[:, :length] for name in ("residual_rms", "residual_peak", "peak_channel")}
    cut |= {name: getattr(passage, name)[:, :length] for name in ("lens_ids", "lens_top", "lens_next")}
    cut |= {name: getattr(passage, name)[:, :length] for name in ("gate_counts", "gate_shares")}
    cut |= {name: getattr(passage, name)[:, :, :length] for name in ("query", "key")}
    return Passage(
        text="".join(passage.token_texts[:length]),
        token_texts=passage.token_texts[:length],
        token_ids=passage.token_ids[:length],
        weights=passage.weights[:, :, :length, :length],
        losses={name: losses[: length - 1] for name, losses in passage.losses.items()},
        words=passage.words,
        settings=passage.settings,
        provenance=passage.provenance,
        **cut,
    )


@pytest.fixture
def shared(monkeypatch):
    """Three panels over one reading that needs no weights: it reads any text as the first seven tokens."""
    monkeypatch.setattr(Reading, "_steps", lambda self, text: iter([0.0, 0.5, shorter(load_passage(), 7)]))
    first = RealModelStream()
    return [first, RealModelHeads(first.reading), RealModelParts(first.reading)]


def test_another_passage_is_shown_by_all_panels(shared):
    reading = shared[0].reading
    pictures = [panel.picture.value for panel in shared]
    reading.text.value = "another"
    for panel, before in zip(shared, pictures, strict=True):
        assert panel.error is None
        assert panel.picture.value != before
        for name in panel.tokens:
            assert panel.controls[name].max == 6
            assert panel.state[name] <= 6
    assert reading.text.value == "The ferry leaves the old harbour at"
    assert reading.progress.value == ""
    assert reading.tokens.value.count("<sub>") == 7
    assert reading.tokens.value.count("<wbr>") == 6  # where a script without spaces may be broken


def test_presets_and_reset_bring_the_librarys_passage_back(shared):
    for label in ("A massive activation", None):
        shared[0].reading.text.value = "another"
        shared[0].press([*shared[0].presets].index(label) if label else -1)
        assert shared[0].passage.text == load_passage().text == shared[0].reading.text.value
        assert all(panel.error is None and len(panel.passage) == 20 for panel in shared)


def test_a_refused_text_is_told_and_changes_nothing(monkeypatch, logged):
    def refuse(self, text):
        yield 0.0
        raise ValueError("text: got <1> token")

    monkeypatch.setattr(Reading, "_steps", refuse)
    panel = RealModelStream()
    before = panel.picture.value
    panel.reading.text.value = "x"
    assert "Got &lt;1&gt; token. The explorers go on with" in panel.reading.status.value
    assert panel.picture.value == before
    assert [message for message in logged.messages if "could not read 'x'" in message]
    logged.clear()


@pytest.mark.parametrize("way", ["a preset", "the passage typed again"])
def test_after_a_refused_text_the_line_and_its_note_are_those_of_the_passage(way, monkeypatch, logged):
    def refuse(self, text):
        raise ValueError("text: got 1 token")

    monkeypatch.setattr(Reading, "_steps", refuse)
    panel = RealModelStream()
    note = panel.reading.status.value
    panel.reading.text.value = "x"
    assert panel.reading.status.value != note
    logged.clear()
    if way == "a preset":
        press(panel, "A massive activation")
    else:
        panel.reading.text.value = panel.passage.text
    assert panel.reading.text.value == panel.passage.text
    assert panel.reading.status.value == note


def test_without_weights_nothing_can_be_typed_and_the_page_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv(weights.FOLDER_VARIABLE, str(tmp_path))
    reading = Reading()
    assert reading.text.disabled
    assert "make model" in reading.status.value
    (tmp_path / weights.FILE_NAME).write_bytes(b"")
    assert not Reading().text.disabled


@pytest.mark.parametrize("kind", PANELS)
def test_an_error_of_the_weights_is_told(kind, monkeypatch, tmp_path, logged):
    monkeypatch.setenv(weights.FOLDER_VARIABLE, str(tmp_path))
    panel = kind()
    panel.reading.text.value = "Hello there"
    assert "there is no such file" in panel.reading.status.value
    logged.clear()
