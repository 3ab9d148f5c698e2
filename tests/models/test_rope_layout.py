"""The three readings of the model, on the small file and in the committed report."""

import json
from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.models import make_rope_layout, rope_layout, weights
from transformer_parts.models.excerpt import load_excerpt
from transformer_parts.models.notes import sealed
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.weights import GGUFFile

IDS = [5, 31, 7, 211, 5, 40, 3, 262, 31]


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(GGUFFile(tiny.path))


@pytest.fixture
def report():
    return rope_layout.load_report()


def probabilities(model, ids, positions=None):
    logits = model.forward(ids, positions).astype(np.float64)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


# ---------------------------------------------------------------- on the small file


def test_measure_against_a_loop(tiny, model):
    split = load_model(GGUFFile(tiny.path), layout="split")
    readings = {"interleaved": (model, None), "split": (split, None), "none": (model, [0] * len(IDS))}
    got = make_rope_layout.measure(model, IDS, window=4)
    for name, (reading, positions) in readings.items():
        chosen = [p[i] for p, i in zip(probabilities(reading, IDS, positions), IDS[1:], strict=False)]
        assert got["loss"][name] == pytest.approx(-np.mean(np.log(chosen)), abs=2e-5)
    assert got["windows"] == 5
    for name in ("split", "none"):
        divergence, kept = np.zeros((2, 5, 4))
        for start in range(5):
            piece = IDS[start : start + 4]
            right = probabilities(model, piece)
            read = probabilities(readings[name][0], piece, None if name == "split" else [0] * 4)
            divergence[start] = (right * np.log(right / read)).sum(-1)
            kept[start] = right.argmax(-1) == read.argmax(-1)
        np.testing.assert_allclose(got["divergence"][name], divergence.mean(0), rtol=0, atol=2e-5)
        np.testing.assert_allclose(got["kept"][name], kept.mean(0), rtol=0, atol=1e-6)


def test_continuation_takes_the_likeliest_token_each_time(model):
    for reading in rope_layout.READINGS:
        ids = list(IDS[:3])
        for _ in range(4):
            likely = make_rope_layout.log_probabilities(model, reading, ids)
            ids.append(int(likely[-1].argmax()))
        assert make_rope_layout.continued(model, reading, IDS[:3], 4) == ids[3:]


def test_bad_input_is_refused(model):
    split = replace(model, layers=tuple(replace(layer, layout="split") for layer in model.layers))
    with pytest.raises(ValueError, match="the layout of model: got 'split'"):
        make_rope_layout.measure(split, IDS)
    with pytest.raises(ValueError, match="window: got 9"):
        make_rope_layout.measure(model, IDS, window=9)
    with pytest.raises(ValueError, match="reading: got 'half'"):
        make_rope_layout.read_as(model, "half", 3)
    with pytest.raises(ValueError, match="new_tokens: got 0"):
        make_rope_layout.continued(model, "split", IDS, 0)


# ---------------------------------------------------------------- the report


def test_report_is_of_these_weights_and_this_passage(report):
    passage = load_excerpt()
    assert report.provenance["weights_sha256"] == weights.SHA256 == passage.provenance["weights_sha256"]
    assert report.provenance["command"] == rope_layout.COMMAND
    assert report.provenance["tokens"] == len(passage.token_ids)
    assert report.windows == len(passage.token_ids) - make_rope_layout.WINDOW
    assert list(report.continuations) == list(make_rope_layout.PROMPTS)
    assert {tuple(texts) for texts in report.continuations.values()} == {rope_layout.READINGS}


def test_what_the_notebook_says_of_it(report):
    assert report.loss == pytest.approx({"interleaved": 3.442, "split": 4.618, "none": 5.109}, abs=2e-3)
    for reading in ("split", "none"):
        assert (report.divergence[reading][0], report.kept[reading][0]) == (0, 1)
        early, late = np.mean(report.divergence[reading][1:5]), np.mean(report.divergence[reading][-4:])
        assert late > 3 * early > 0
    assert np.mean(report.kept["split"][-8:]) < 0.5


def test_first_window_of_the_real_model(real_path, report):
    """The committed report holds for the weights that are there; the whole of it is the command's work."""
    model = load_model(GGUFFile(real_path))
    ids = load_excerpt().token_ids
    for reading in rope_layout.READINGS:
        likely = make_rope_layout.log_probabilities(model, reading, ids)
        loss = -likely[np.arange(len(ids) - 1), ids[1:]].mean()
        assert loss == pytest.approx(report.loss[reading], abs=2e-3)


@pytest.mark.parametrize(
    "damage", ["not json", "[]", "{}", '{"loss": {}, "divergence": 3}', sealed('{"loss": {}, "divergence": 3}')]
)
def test_a_damaged_report_is_refused(tmp_path, damage):
    (tmp_path / rope_layout.REPORT_NAME).write_text(damage)
    with pytest.raises(ValueError, match="got a damaged file"):
        rope_layout.load_report(tmp_path)


def test_a_missing_report_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=rope_layout.REPORT_NAME):
        rope_layout.load_report(tmp_path)


def test_loading_again_gives_a_new_report(report, tmp_path):
    assert rope_layout.load_report() == report
    assert rope_layout.load_report() is not report
    text = json.dumps({"loss": {}, "divergence": {}, "kept": {}, "windows": 1, "continuations": {}, "provenance": {}})
    (tmp_path / rope_layout.REPORT_NAME).write_text(sealed(text))
    assert rope_layout.load_report(tmp_path).windows == 1
