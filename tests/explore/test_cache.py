"""The panels of the cache: presets give what is told of them, and every wrong way says so."""

import re

import numpy as np
import pytest

from transformer_parts.draw.cache import EXACT
from transformer_parts.explore.cache import CUSTOM, WAYS, CacheHeads, CacheSize, CacheSteps
from transformer_parts.maths.cache import FAULTS

RIGHT = ("none", "padding counted")


def table(panel):
    """The lines of the table, by label."""
    rows = re.findall(r"<th[^>]*>(?:<span[^>]*></span>)?(.*?)</th><td>(.*?)</td>", panel.readout.value)
    return dict(rows)


@pytest.fixture
def steps():
    return CacheSteps()


@pytest.fixture
def heads():
    return CacheHeads()


@pytest.fixture
def size():
    return CacheSize()


def test_every_fault_is_offered(steps):
    assert list(WAYS.values()) == list(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_wrong_way_says_so(steps, fault):
    # 16 tokens in the end: beyond the trained length
    steps.set(fault=fault, pad=3, step=10, prompt=6, n_layers=2, trained_length=8)
    shown = table(steps)
    verdict, worst = shown["the same as the whole sequence at once?"], float(shown["largest error so far"])
    if fault in RIGHT:
        assert verdict == "yes, to 1e-12"
        assert worst < EXACT
    else:
        first = {"padding seen": 0, "base not restored": 0}.get(fault, 3 if "base" in fault else 1)
        assert verdict == f"no, first at step {first}"
        assert worst > 0.1


@pytest.mark.parametrize(
    ("preset", "verdict", "used"),
    [
        ("Right", "yes, to 1e-12", 13),
        ("Restart at 0", "no, first at step 1", 0),
        ("Off by one", "no, first at step 1", 14),
        ("Rotated again", "no, first at step 1", 7),
        ("Per layer", "no, first at step 1", 14),
        ("Left padding", "no, first at step 1", 16),
        ("Base grows, 1 layer", "yes, to 1e-12", 13),
        ("Base grows, 2 layers", "no, first at step 3", 13),
    ],
)
def test_presets_of_the_steps(steps, preset, verdict, used):
    steps.set(**steps.presets[preset])
    shown = table(steps)
    assert shown["the same as the whole sequence at once?"] == verdict
    assert shown["position it was turned by"] == str(used)
    assert shown["position of the newest token, right"] == ("7" if preset == "Rotated again" else "13")


def test_the_cache_grows_by_a_token_each_step(steps):
    for step in range(11):
        steps.set(step=step, prompt=6, pad=0, n_layers=2, n_kv_heads=2)
        shown = table(steps)
        assert shown["tokens in the cache, padding among them"] == f"{6 + step}, 0"
        assert shown["bytes per token, float64: 2·layers·G·K·8"] == "512"
        assert shown["bytes in the cache"] == f"{512 * (6 + step):,}"
        data = steps.compute(**steps.state)
        assert data.keys.shape == data.right_keys.shape == (2, 6 + step, 2)
        assert len(data.errors) == step + 1


def test_keys_that_were_cached_stay_as_they_are_in_the_right_way(steps):
    steps.set(fault="none", step=10)
    late = steps.compute(**steps.state)
    steps.set(step=4)
    early = steps.compute(**steps.state)
    np.testing.assert_array_equal(late.keys[:, : early.keys.shape[1]], early.keys)
    steps.set(fault="rotated again", step=10, pair=0)
    turned = steps.compute(**steps.state)
    assert np.abs(turned.keys - turned.right_keys).max() > 0.1


def test_padding_is_there_where_it_is_wrong(steps):
    steps.controls["fault"].value = "padding seen"
    assert steps.controls["pad"].value == 3
    steps.controls["pad"].value = 0
    assert table(steps)["the same as the whole sequence at once?"] == "yes, to 1e-12"


def test_the_layer_shown_is_one_there_is(steps):
    steps.set(n_layers=3, layer=2)
    steps.controls["n_layers"].value = 1
    assert steps.controls["layer"].value == 0
    assert steps.error is None


def test_a_step_costs_no_second_run(steps, monkeypatch):
    ran = []
    monkeypatch.setattr("transformer_parts.explore.cache.steps.decode", lambda *a, **k: ran.append(a))
    for step in range(11):
        steps.set(step=step)
    steps.set(pair=2, head=3)
    assert not ran


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "padding" not in fault])
def test_a_real_head_shows_what_is_wrong(heads, fault):
    heads.set(head=(16, 0), fault=fault, prompt=24, step=0, trained_length=16)
    heads.set(step=25)
    data = heads.compute(**heads.state)
    np.testing.assert_allclose([data.weights.sum(), data.right_weights.sum()], 1, atol=1e-12)
    # in one head keys cached before the rotation are exact
    right = fault in ("none", "base changed, unrotated keys")
    assert (data.misplaced.max() < EXACT) == right
    assert (table(heads)["attends most to, rightly"] == table(heads)["attends most to, here"]) or not right


def test_the_telling_moments_of_the_head(heads):
    heads.set(**heads.presets["Previous token, restart at 0"])
    shown = table(heads)
    assert shown["attends most to, rightly"].startswith("30 ")
    assert shown["attends most to, here"].startswith("0 ")
    assert shown["position, right and used"] == "31, 0"
    heads.set(**heads.presets["Off by one, the first step"])
    assert float(table(heads)["attention on the wrong tokens"].split()[0]) > 30
    heads.set(**heads.presets["Off by one, ten steps on"])
    assert float(table(heads)["attention on the wrong tokens"].split()[0]) < 1
    heads.set(**heads.presets["Induction, rotated again"])
    # after "ten" the token that followed "ten" before: "past", at 10
    assert table(heads)["newest token"] == "&#x27;ten&#x27;"
    assert table(heads)["attends most to, rightly"].startswith("10 &#x27;past&#x27;")


def test_steps_end_with_the_passage(heads):
    heads.set(prompt=40)
    assert heads.controls["step"].max == 9
    heads.set(prompt=8, step=41)
    assert table(heads)["newest token"] == "&#x27;four&#x27;"


@pytest.mark.parametrize(
    ("preset", "per_token", "held", "fits"),
    [
        ("Llama 3 8B", "131,072", "1.0000 GiB", "131,072"),
        ("Llama 2 7B", "524,288", "2.0000 GiB", "32,768"),
        ("Llama 3 70B at 131,072", "327,680", "40.0000 GiB", "209,715"),
        ("SmolLM2, float32", "46,080", "0.7031 GiB", "46,603"),
    ],
)
def test_bytes_of_published_models(size, preset, per_token, held, fits):
    size.set(**size.presets[preset])
    shown = list(table(size).values())
    assert (shown[0], shown[3], shown[6]) == (per_token, held, fits)


def test_bytes_are_the_product_that_the_label_names(size):
    size.set(n_layers=7, n_heads=12, n_kv_heads=3, head_dim=80, value_bytes=0.5)
    label, value = next(iter(table(size).items()))
    factors = label.split("= ")[1].split("·")
    assert np.prod([float(factor) for factor in factors]) == float(value.replace(",", "")) == 2 * 7 * 3 * 80 / 2


def test_sizes_of_no_model_are_custom_and_back(size):
    size.set(n_layers=31)
    assert size.controls["model"].value == CUSTOM
    size.set(n_layers=32)
    assert size.controls["model"].value == "Llama 3 8B"
    size.set(n_heads=9)
    assert size.controls["n_kv_heads"].options == (1, 3, 9)
    assert size.controls["n_kv_heads"].value == 3


@pytest.mark.parametrize("length", [1, 2, 8192])
def test_the_label_of_the_held_cache_holds_for_one_token(length):
    panel = CacheSize()
    panel.set(length=length)
    shown = table(panel)
    assert f"cache, tokens held: {length:,}" in shown
    assert not any("tokens" in label and " 1 " in label for label in shown)
