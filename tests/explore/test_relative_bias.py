"""The explorers of notebook 03: the worked numbers stand on the screen."""

import numpy as np
import pytest
from panel_table import after

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.relative_bias import AlibiSlopes, BiasAndWeights, T5Buckets


def shown(panel, label: str) -> str:
    """Return the value beside a label; the same text must stand on the page."""
    values = [row.value for row in panel.rows(panel.compute(**panel.state)) if row.label == label]
    assert f"<td>{values[0]}</td>" in panel.readout.value
    return values[0]


def test_all_are_in_the_catalogue():
    assert {T5Buckets, AlibiSlopes, BiasAndWeights} <= set(PANELS)


# ---------------------------------------------------------------- buckets


@pytest.mark.parametrize(
    ("preset", "bucket", "shared", "exact", "last", "occur"),
    [
        ("T5's encoder", "-50: 13", "-63 to -46", "0 to 7", "91 on", "31 of 32"),
        ("T5's decoder", "-50: 24", "-51 to -46", "0 to 15", "113 on", "32 of 32"),
        ("Just before the last bucket", "-90: 14", "-90 to -64", "0 to 7", "91 on", "31 of 32"),
        ("In the last bucket", "-91: 15", "all up to -91", "0 to 7", "91 on", "31 of 32"),
        ("By hand: 8 buckets, 16", "-6: 5", "-7 to -6", "0 to 3", "12 on", "8 of 8"),
    ],
)
def test_buckets_stand_on_the_screen(preset, bucket, shared, exact, last, occur):
    panel = after(T5Buckets(), preset)
    assert shown(panel, "bucket of j − i") == bucket
    assert shown(panel, "all j − i in this bucket") == shared
    assert shown(panel, "exact distances") == exact
    assert shown(panel, "the last one holds every distance from") == last
    assert shown(panel, "buckets that occur") == occur


def test_keys_after_the_query():
    panel = T5Buckets()
    assert shown(panel, "keys after the query") == "buckets 17 to 31"
    panel.set(offset=200)
    assert shown(panel, "all j − i in this bucket") == "91 and all above"
    panel.set(offset=1)
    assert shown(panel, "all j − i in this bucket") == "1"
    panel.set(bidirectional=False)
    assert shown(panel, "keys after the query") == "bucket 0, and masked"
    assert shown(panel, "all j − i in this bucket") == "0 and all above"


def test_the_greatest_distance_stays_beyond_the_exact_buckets():
    panel = T5Buckets()
    panel.controls["max_distance"].value = 8
    assert panel.state["num_buckets"] == 28
    panel.controls["num_buckets"].value = 64
    assert panel.state["max_distance"] == 24
    panel.controls["bidirectional"].value = False
    assert panel.state["max_distance"] == 48
    assert panel.controls["offset"].max == 96
    assert panel.error is None


# ---------------------------------------------------------------- slopes


@pytest.mark.parametrize(
    ("preset", "slope", "power", "of_power", "between", "ratios"),
    [
        ("n = 8", "0.125000", "3.0000", "8: −log₂ m = (1.00, 2.00, 3.00, 4.00, …)", "none", "0.5000 to 0.5000"),
        (
            "n = 12", "0.707107", "0.5000", "8: −log₂ m = (1.00, 2.00, 3.00, 4.00, …)",
            "4: −log₂ m = (0.50, 1.50, 2.50, 3.50)", "0.5000 to 0.7071",
        ),
        ("n = 16", "0.125000", "3.0000", "16: −log₂ m = (0.50, 1.00, 1.50, 2.00, …)", "none", "0.7071 to 0.7071"),
        (
            "n = 20", "0.840896", "0.2500", "16: −log₂ m = (0.50, 1.00, 1.50, 2.00, …)",
            "4: −log₂ m = (0.25, 0.75, 1.25, 1.75)", "0.7071 to 0.8409",
        ),
    ],
)  # fmt: skip
def test_slopes_stand_on_the_screen(preset, slope, power, of_power, between, ratios):
    panel = after(AlibiSlopes(), preset)
    assert shown(panel, "slope m of the head") == slope
    assert shown(panel, "−log₂ m") == power
    assert shown(panel, "heads of the power of two") == of_power
    assert shown(panel, "heads between") == between
    assert shown(panel, "ratios of neighbours by size") == ratios


def test_the_single_sequence_is_shown_beside():
    panel = AlibiSlopes()
    assert shown(panel, "the single sequence 2^(−8h/n) would give") == "0.015625"
    panel.set(n_heads=1)
    assert panel.state["head"] == 1
    assert shown(panel, "ratios of neighbours by size") == "—"


# ---------------------------------------------------------------- weights


def test_alibi_on_equal_scores_is_a_geometric_fall():
    panel = BiasAndWeights()
    ratio = np.exp(-0.25)
    first = (1 - ratio) / (1 - ratio**41)
    assert shown(panel, "slope m of the head") == "0.250000"
    assert shown(panel, "bias at distance 0, 1, 8, 32 back") == "0.0000, -0.2500, -2.0000, -8.0000"
    wanted = ", ".join(f"{first * ratio**d:.4f}" for d in (0, 1, 8, 32))
    assert shown(panel, "weights at distance 0, 1, 8, 32") == wanted
    assert shown(panel, "keys effectively read, exp H") == "10.90 of 41"
    assert shown(panel, "learned numbers, once for all layers") == "0"


def test_t5_divided_by_root_k_loses_its_content():
    panel = after(BiasAndWeights(), "T5's decoder")
    assert shown(panel, "spread of the content's logits") == "1.0087"
    assert shown(panel, "learned numbers, once for all layers") == "256"
    after(panel, "T5 divided by √K")
    assert shown(panel, "spread of the content's logits") == "0.1261"  # an eighth
    assert shown(panel, "slope m of the head") == "—"


def test_alibis_bias_is_not_divided():
    panel = after(BiasAndWeights(), "ALiBi, m = 1/4")
    panel.set(divided=True)
    assert shown(panel, "bias at distance 0, 1, 8, 32 back") == "0.0000, -0.0312, -0.2500, -1.0000"


@pytest.mark.parametrize("scheme", ["none", "alibi", "t5"])
def test_without_a_bias_the_content_alone_decides(scheme):
    panel = BiasAndWeights()
    panel.set(scheme=scheme, content="real", seed=3)
    data = panel.compute(**panel.state)
    assert np.array_equal(data.biased, data.plain) == (scheme == "none")
    np.testing.assert_allclose(data.biased.sum(-1), 1)
    assert not data.biased[~data.visible].any()


def test_the_head_stays_among_the_heads():
    panel = BiasAndWeights()
    panel.set(n_heads=12, head=12)
    panel.controls["n_heads"].value = 3
    assert panel.state["head"] == 3
    assert panel.error is None
    assert shown(panel, "slope m of the head") == "0.250000"
