"""Context extension: every method against transformers and a slow loop, worked numbers, and known faults of others."""

import importlib.util
import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths import attention, rope
from transformer_parts.maths.context_extension import (
    angle_coverage,
    dynamic_factor,
    dynamic_ntk,
    entropy_by_length,
    llama3,
    longrope,
    ntk_aware,
    ntk_base,
    ntk_by_parts,
    position_interpolation,
    yarn,
)

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden_context_extension.json").read_text("utf-8"))
# transformers computes frequencies in float32: a few units in its last place, 6e-8, more where it takes powers.
FLOAT32 = 3e-6
laws = settings(max_examples=60, deadline=None)
head_dims = st.sampled_from((4, 6, 10, 22, 64, 128))
factors = st.floats(1, 64)
lengths = st.integers(1, 200_000)
bases = st.sampled_from((50.0, 10000.0, 500000.0))


@pytest.fixture(scope="module")
def make_golden(torch, transformers):
    path = HERE / "make_golden_context_extension.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ours(kind, head_dim, rope_base, trained_length, length, more):
    """Call the library for a case of the golden file."""
    factor, base = more["factor"], {"rope_base": rope_base}
    rest = {name: value for name, value in more.items() if name != "factor"}
    if kind == "linear":
        return position_interpolation(head_dim, factor, **base)
    if kind == "dynamic":
        return dynamic_ntk(head_dim, length, trained_length, factor=factor, **base)
    if kind == "longrope":
        return longrope(head_dim, length, trained_length, factor=factor, **base, **rest)
    return {"yarn": yarn, "llama3": llama3}[kind](head_dim, factor, trained_length, **base, **rest)


CASES = {  # as in make_golden_context_extension.py, which needs transformers to be imported
    "pi": ("linear", 128, 10000.0, 2048, None, {"factor": 2.0}),
    "pi_other": ("linear", 22, 500000.0, 8192, None, {"factor": 3.5}),
    "dynamic_short": ("dynamic", 128, 10000.0, 4096, 100, {"factor": 1.0}),
    "dynamic_at": ("dynamic", 128, 10000.0, 4096, 4096, {"factor": 4.0}),
    "dynamic_after": ("dynamic", 128, 10000.0, 4096, 4097, {"factor": 4.0}),
    "dynamic_paper": ("dynamic", 128, 10000.0, 4096, 32768, {"factor": 1.0}),
    "dynamic_factor": ("dynamic", 22, 7000.0, 1021, 6007, {"factor": 2.5}),
    "yarn_8": ("yarn", 128, 10000.0, 4096, None, {"factor": 8.0}),
    "yarn_untruncated": ("yarn", 128, 10000.0, 4096, None, {"factor": 8.0, "truncate": False}),
    "yarn_betas": ("yarn", 64, 150000.0, 4096, None, {"factor": 32.0, "beta_fast": 16.0, "beta_slow": 2.0}),
    "yarn_low_bound": ("yarn", 22, 10000.0, 150, None, {"factor": 3.0}),
    "yarn_high_bound": ("yarn", 22, 100.0, 50021, None, {"factor": 3.0}),
    "yarn_channels": ("yarn", 128, 10000.0, 131072, None, {"factor": 4.0}),
    "yarn_tie": ("yarn", 22, 10000.0, 6, None, {"factor": 3.0}),
    "llama3_1": ("llama3", 128, 500000.0, 8192, None, {"factor": 8.0}),
    "llama3_2": ("llama3", 64, 500000.0, 8192, None, {"factor": 32.0}),
    "llama3_other": (
        "llama3",
        22,
        10000.0,
        1021,
        None,
        {"factor": 3.0, "low_freq_factor": 2.0, "high_freq_factor": 9.0},
    ),
} | {
    f"longrope_{name}": (
        "longrope",
        44,
        10000.0,
        4096,
        length,
        {
            "factor": 32.0,
            "short_factor": [1 + i / 50 for i in range(22)],
            "long_factor": [1 + i * i / 20 for i in range(22)],
        },
    )
    for name, length in (("at", 4096), ("after", 4097))
}


# ---------------------------------------------------------------- oracles


def test_the_golden_file_has_these_cases():
    assert GOLDEN.keys() == CASES.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_agrees_with_the_golden_values(name):
    got = ours(*CASES[name])
    np.testing.assert_allclose(got.inv_freq, GOLDEN[name]["inv_freq"], rtol=FLOAT32)
    assert got.attention_factor == pytest.approx(GOLDEN[name]["attention_factor"], rel=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_values_are_those_of_transformers(make_golden, name):
    inv_freq, attention_factor = make_golden.compute(*make_golden.CASES[name])
    np.testing.assert_allclose(inv_freq, GOLDEN[name]["inv_freq"], rtol=1e-6)
    assert attention_factor == pytest.approx(GOLDEN[name]["attention_factor"], rel=1e-12)


def by_definition(head_dim, s, L, base, alpha, beta, ramp):
    """The paper's Definition 2, and the released code's ramp without rounding, one pair at a time in 40 digits."""
    out = []
    for i in range(head_dim // 2):
        theta = mpmath.mpf(base) ** (-mpmath.mpf(2 * i) / head_dim)
        if ramp == "rotations":
            gamma = (L * theta / (2 * mpmath.pi) - alpha) / (beta - alpha)
        else:
            at = [head_dim * mpmath.log(L / (2 * mpmath.pi * n)) / (2 * mpmath.log(base)) for n in (beta, alpha)]
            gamma = 1 - (i - at[0]) / (at[1] - at[0])
        gamma = min(max(gamma, 0), 1)
        out.append(float((1 - gamma) * theta / s + gamma * theta))
    return out


@pytest.mark.parametrize("ramp", ["rotations", "index"])
@pytest.mark.parametrize(("L", "base", "alpha", "beta"), [(4096, 10000, 1, 32), (8191, 500000, 2, 17)])
def test_both_ramps_are_their_formulas(ramp, L, base, alpha, beta):
    with mpmath.workdps(40):
        wanted = by_definition(106, 7, L, base, alpha, beta, ramp)
    got = ntk_by_parts(106, 7, L, rope_base=base, beta_slow=alpha, beta_fast=beta, ramp=ramp, truncate=False)
    np.testing.assert_allclose(got.inv_freq, wanted, rtol=1e-13)


def test_ntk_aware_is_the_power_of_its_base():
    with mpmath.workdps(40):
        base = 10000 * mpmath.mpf(8) ** (mpmath.mpf(128) / 126)
        wanted = [float(base ** (-mpmath.mpf(2 * i) / 128)) for i in range(64)]
    np.testing.assert_allclose(ntk_aware(128, 8).inv_freq, wanted, rtol=1e-13)
    assert ntk_base(128, 8) == pytest.approx(float(base), rel=1e-14)


# ---------------------------------------------------------------- worked numbers


def test_position_interpolation_by_hand():
    """2048 → 4096: position 3000 stands at 1500, a distance of 100 counts as 50."""
    scaled, plain = position_interpolation(22, 4096 / 2048), rope.inv_freq(22)
    x = np.random.default_rng(3).normal(size=(2, 22))
    for whole, half in ((3000, 1500), (100, 50)):
        np.testing.assert_allclose(
            rope.rotate(x, [0, whole], inv_freq=scaled.inv_freq), rope.rotate(x, [0, half], inv_freq=plain), atol=1e-12
        )
    assert scaled.attention_factor == 1


def test_ntk_aware_keeps_the_fastest_and_divides_the_slowest_by_exactly_s():
    ratios = ntk_aware(128, 8).inv_freq / rope.inv_freq(128)
    assert ratios[0] == 1
    assert ratios[-1] == pytest.approx(0.125, rel=1e-13)
    np.testing.assert_allclose(ratios, 8.0 ** (-2 * np.arange(64) / 126), rtol=1e-13)


def test_where_the_ramps_of_yarn_begin_and_end():
    """Head 128, base 10000, 4096: pairs 0 … 20 make 32 rotations, pairs from 46 on not one."""
    plain = rope.inv_freq(128)
    for ramp, kept, slowed in (("index", 21, 18), ("rotations", 21, 18)):
        ratios = ntk_by_parts(128, 8, 4096, ramp=ramp).inv_freq / plain
        assert (ratios > 1 - 1e-12).sum() == kept
        assert (ratios < 1 / 8 + 1e-12).sum() == slowed
        assert (np.diff(ratios) < 1e-12).all()
    index, rotations = (ntk_by_parts(128, 8, 4096, ramp=ramp).inv_freq / plain for ramp in ("index", "rotations"))
    assert (index > rotations)[23:46].all()
    assert (index - rotations).max() == pytest.approx(0.3213, abs=5e-5)
    assert (index - rotations).argmax() == 30


def test_temperature_of_yarn():
    for s, wanted in ((1, 1.0), (8, 1.207944), (16, 1.277259), (32, 1.346574)):
        assert yarn(22, s, 4096).attention_factor == pytest.approx(wanted, abs=5e-7)
    assert yarn(128, 8, 4096).attention_factor ** 2 == pytest.approx(1.459129, abs=5e-7)


def test_attention_factor_of_longrope():
    got = longrope(4, 7, 4096, [1, 1], [1, 1], factor=32)
    assert got.attention_factor == pytest.approx(math.sqrt(1 + 5 / 12))  # 32 = 2⁵, 4096 = 2¹²


def test_bands_of_llama3():
    wavelengths = rope.wavelengths(rope.inv_freq(128, 500000.0))
    ratios = llama3(128).inv_freq / rope.inv_freq(128, 500000.0)
    np.testing.assert_array_equal(ratios[wavelengths < 2048], 1)
    np.testing.assert_array_equal(ratios[wavelengths > 8192], 1 / 8)
    between = ratios[(wavelengths >= 2048) & (wavelengths <= 8192)]
    assert len(between) == 6
    assert ((between > 1 / 8) & (between < 1)).all()


# ---------------------------------------------------------------- laws

METHODS = {
    "pi": lambda d, s, L, base: position_interpolation(d, s, rope_base=base),
    "ntk": lambda d, s, L, base: ntk_aware(d, s, rope_base=base),
    "dynamic": lambda d, s, L, base: dynamic_ntk(d, round(s * L), L, rope_base=base),
    "index": lambda d, s, L, base: yarn(d, s, L, rope_base=base),
    "index, not truncated": lambda d, s, L, base: yarn(d, s, L, rope_base=base, truncate=False),
    "rotations": lambda d, s, L, base: yarn(d, s, L, rope_base=base, ramp="rotations"),
    "llama3": lambda d, s, L, base: llama3(d, s, L, rope_base=base),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@laws
@given(d=head_dims, s=factors, L=lengths, base=bases)
def test_no_pair_is_sped_up_or_slowed_by_more_than_s(method, d, s, L, base):
    got, plain = method(d, s, L, base), rope.inv_freq(d, base)
    ratios = got.inv_freq / plain
    bound = 1 / (max(1, round(s * L) / L) if method is METHODS["dynamic"] else s)
    assert got.inv_freq.shape == plain.shape
    assert got.inv_freq.dtype == np.float64
    assert ratios.max() <= 1 + 1e-12
    assert ratios.min() >= bound * (1 - 1e-12)
    assert (np.diff(ratios) <= 1e-12).all()
    assert got.attention_factor >= 1


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@laws
@given(d=head_dims, L=lengths, base=bases)
def test_no_extension_changes_nothing(method, d, L, base):
    got = method(d, 1, L, base)
    np.testing.assert_allclose(got.inv_freq, rope.inv_freq(d, base), rtol=1e-14)
    assert got.attention_factor == 1


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_base_is_not_ignored(method):
    small, large = method(22, 4, 1021, 10000.0), method(22, 4, 1021, 500000.0)
    assert (large.inv_freq[1:] < small.inv_freq[1:]).all()


def test_longrope_reads_its_base():
    lists = [1.0] * 11, [2.0] * 11
    np.testing.assert_allclose(
        longrope(22, 9, 4, *lists, factor=2, rope_base=500.0).inv_freq, rope.inv_freq(22, 500.0) / 2
    )


# ---------------------------------------------------------------- faults of public implementations


def test_the_base_is_restored_after_a_long_input():
    """transformers#25306: a long input left its frequencies behind for every short one after it."""
    before = dynamic_ntk(128, 100, 4096).inv_freq
    dynamic_ntk(128, 32768, 4096)
    np.testing.assert_array_equal(dynamic_ntk(128, 100, 4096).inv_freq, before)
    np.testing.assert_array_equal(dynamic_ntk(128, 4096, 4096).inv_freq, rope.inv_freq(128))
    assert (dynamic_ntk(128, 4097, 4096).inv_freq[1:] < before[1:]).all()


def test_longrope_switches_between_4096_and_4097_and_back():
    short, long = np.full(11, 1.5), np.full(11, 30.0)
    plain = rope.inv_freq(22)
    for length, factors in ((4096, short), (4097, long), (4096, short), (1, short), (131072, long)):
        got = longrope(22, length, 4096, short, long, factor=32)
        np.testing.assert_allclose(got.inv_freq, plain / factors, rtol=1e-15)
        assert got.attention_factor == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)))


def test_keys_cached_before_the_switch_do_not_fit_those_after_it(rng):
    """What a stale cache of rotated keys costs: the score of one and the same query and key."""
    short, long = (longrope(22, n, 64, [1.05] * 11, [20.0] * 11, factor=32).inv_freq for n in (64, 65))
    query, key = rng.normal(size=(2, 1, 22))
    fresh = rope.rotate(query, [64], inv_freq=long) @ rope.rotate(key, [60], inv_freq=long).T
    stale = rope.rotate(query, [64], inv_freq=long) @ rope.rotate(key, [60], inv_freq=short).T
    np.testing.assert_allclose(fresh, query @ rope.rotate(key, [-4], inv_freq=long).T, atol=1e-12)
    assert abs(fresh - stale).item() > 0.5


def test_the_temperature_goes_to_query_and_to_key(rng):
    scaled = yarn(22, 16, 53)
    query, key = rng.normal(size=(2, 1, 7, 22))
    turned = [rope.rotate(x, np.arange(7), inv_freq=scaled.inv_freq) for x in (query, key)]
    plain = attention.scores(*turned)
    both = attention.scores(*(x * scaled.attention_factor for x in turned))
    np.testing.assert_allclose(both, plain * (0.1 * math.log(16) + 1) ** 2, rtol=1e-12)


@pytest.mark.parametrize("ramp", ["index", "rotations"])
def test_the_ramp_slows_the_slow_end(ramp):
    plain = rope.inv_freq(128)
    ratios = ntk_by_parts(128, 8, 4096, ramp=ramp).inv_freq / plain
    assert ratios[0] == 1
    assert ratios[-1] == 1 / 8


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize(
    ("trained_length", "rope_base", "ratio"),
    [
        (1, 10000.0, 1 / 8),  # no pair makes a rotation: all are slowed
        (10**9, 2.0, 1.0),  # every pair makes thousands: none is
    ],
)
def test_the_ramp_does_not_turn_over_where_its_limits_cross(trained_length, rope_base, ratio, truncate):
    """The limits 0 and K − 1 cross there; the released code then keeps what should be slowed, and the other way."""
    for ramp in ("index", "rotations"):
        got = ntk_by_parts(22, 8, trained_length, rope_base=rope_base, ramp=ramp, truncate=truncate).inv_freq
        np.testing.assert_allclose(got / rope.inv_freq(22, rope_base), ratio, rtol=1e-12)


# ---------------------------------------------------------------- bad input

LISTS = {"short_factor": [1.0] * 11, "long_factor": [2.0] * 11, "factor": 8}


@pytest.mark.parametrize(
    ("function", "arguments", "keywords", "name"),
    [
        (position_interpolation, (7, 2), {}, "head_dim"),
        (position_interpolation, (22, 0.5), {}, "factor"),
        (position_interpolation, (22, math.nan), {}, "factor"),
        (position_interpolation, (22, 2), {"rope_base": 0}, "rope_base"),
        (ntk_base, (2, 2), {}, "head_dim"),
        (ntk_aware, (2, 2), {}, "head_dim"),
        (ntk_aware, (22, 0), {}, "factor"),
        (ntk_aware, (4, 1e200), {}, "factor"),
        (ntk_aware, (22, 2), {"rope_base": -1}, "rope_base"),
        (dynamic_factor, (0, 64), {}, "length"),
        (dynamic_factor, (7, 64), {"factor": 0}, "factor"),
        (dynamic_ntk, (22, 0, 64), {}, "length"),
        (dynamic_ntk, (22, 1.5, 64), {}, "length"),
        (dynamic_ntk, (22, 7, 0), {}, "trained_length"),
        (dynamic_ntk, (22, 7, 64), {"factor": 0.9}, "factor"),
        (ntk_by_parts, (22, 2, 64), {"ramp": "linear"}, "ramp"),
        (ntk_by_parts, (22, 2, 64), {"beta_fast": 1.0}, "beta_fast"),
        (ntk_by_parts, (22, 2, 64), {"beta_slow": 0.0}, "beta_slow"),
        (ntk_by_parts, (22, 2, 64), {"truncate": 1}, "truncate"),
        (ntk_by_parts, (22, 2, 64), {"rope_base": 1.0}, "rope_base"),
        (ntk_by_parts, (21, 2, 64), {}, "head_dim"),
        (yarn, (22, 2, -64), {}, "trained_length"),
        (yarn, (22, 0.99, 64), {}, "factor"),
        (llama3, (22,), {"low_freq_factor": 0.0}, "low_freq_factor"),
        (llama3, (22,), {"low_freq_factor": 4.0}, "high_freq_factor"),
        (llama3, (22, "8"), {}, "factor"),
        (longrope, (22, 7, 64), LISTS | {"short_factor": [1.0] * 22}, "short_factor"),
        (longrope, (22, 7, 64), LISTS | {"long_factor": [1.0] * 10 + [0.0]}, "long_factor"),
        (longrope, (22, 7, 64), LISTS | {"long_factor": [1.0] * 10 + [math.inf]}, "long_factor"),
        (longrope, (22, 7, 1), LISTS, "trained_length"),
        (longrope, (22, 0, 64), LISTS, "length"),
        (longrope, (22, 7, 64), LISTS | {"factor": 0.5}, "factor"),
    ],
)
def test_bad_input_is_named(function, arguments, keywords, name):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        function(*arguments, **keywords)


def test_lists_are_not_changed():
    short, long = np.ones(11), np.full(11, 2.0)
    longrope(22, 65, 64, short, long, factor=2)
    np.testing.assert_array_equal(short, 1)
    np.testing.assert_array_equal(long, 2)


TRAINED = rope.inv_freq(128)


def test_46_of_64_pairs_complete_a_turn_and_18_do_not():
    coverage = angle_coverage(TRAINED, TRAINED, 4096, 4096)
    assert coverage.complete.sum() == 46
    np.testing.assert_array_equal(np.flatnonzero(~coverage.complete), np.arange(46, 64))
    assert not coverage.beyond.any()


def test_17_of_18_pairs_exceed_their_trained_angle_with_ntk_aware():
    coverage = angle_coverage(TRAINED, ntk_aware(128, 8).inv_freq, 4096, 32768)
    assert coverage.beyond.sum() == 17
    assert not coverage.beyond[-1]
    excess = coverage.excess[~coverage.complete]
    np.testing.assert_allclose(coverage.ratio[[0, -1]], [1, 1 / 8], rtol=1e-12)
    np.testing.assert_array_equal(coverage.excess, coverage.reached / coverage.seen)
    assert excess.max() == pytest.approx(1.7526, abs=5e-5)
    assert excess[-1] == pytest.approx(1, rel=1e-12)


def test_interpolation_and_yarn_stay_within_the_trained_angles():
    for scaled in (position_interpolation(128, 8), yarn(128, 8, 4096), yarn(128, 8, 4096, ramp="rotations")):
        assert not angle_coverage(TRAINED, scaled.inv_freq, 4096, 32768).beyond.any()
    assert angle_coverage(TRAINED, TRAINED, 4096, 32768).beyond.sum() == 18


def test_what_rotations_reach_is_what_the_coverage_says():
    """The angle of pair i at the last of L positions, read off a turned vector where it is below half a turn."""
    coverage = angle_coverage([0.01, 0.001], [0.005, 0.0005], 101, 203)
    for angles, frequencies, length in ((coverage.seen, [0.01, 0.001], 101), (coverage.reached, [0.005, 0.0005], 203)):
        turned = rope.rotate([[1.0, 0, 1, 0]], [length], inv_freq=frequencies)[0]
        np.testing.assert_allclose(np.arctan2(turned[1::2], turned[0::2]), angles, rtol=1e-12)


def test_entropy_is_that_of_the_weights(rng):
    scores = rng.normal(size=211) * 5
    got = entropy_by_length(scores)
    for n in (1, 2, 3, 97, 211):
        assert got[n - 1] == pytest.approx(float(attention.entropy(attention.softmax(scores[:n]))), abs=1e-12)


def test_entropy_of_equal_scores_is_the_logarithm():
    np.testing.assert_allclose(entropy_by_length(np.full(53, -7.0)), np.log(np.arange(1, 54)), atol=1e-13)


def test_a_factor_above_1_sharpens(rng):
    scores = rng.normal(size=307)
    assert (entropy_by_length(1.46 * scores)[1:] < entropy_by_length(scores)[1:]).all()


def test_far_scores_leave_no_entropy():
    np.testing.assert_allclose(entropy_by_length([0.0, -20.0]), [0, 21 * math.exp(-20)], rtol=1e-6)
    np.testing.assert_array_equal(entropy_by_length([0.0, -599.0]) < 1e-200, True)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: angle_coverage([1.0], [1.0, 0.5], 4, 8), "extended"),
        (lambda: angle_coverage([[1.0]], [1.0], 4, 8), "trained"),
        (lambda: angle_coverage([0.0], [1.0], 4, 8), "trained"),
        (lambda: angle_coverage([1.0], [-1.0], 4, 8), "extended"),
        (lambda: angle_coverage([1.0], [1.0], 0, 8), "trained_length"),
        (lambda: angle_coverage([1.0], [1.0], 4, 8.5), "length"),
        (lambda: entropy_by_length([[1.0]]), "scores"),
        (lambda: entropy_by_length([math.inf]), "scores"),
        (lambda: entropy_by_length([0.0, 700.0]), "scores"),
    ],
)
def test_bad_input_is_named_context_extension_effects(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        call()
