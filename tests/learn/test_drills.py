"""Every drill's answer against a calculation of its own, and each slip told from the answer and from the others."""

import math
import re
from fractions import Fraction

import mpmath
import pytest

from transformer_parts.learn.drills import APART, DRILLS, Drill, Slip

SEEDS = range(200)
every_drill = pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.name)


# ------------------------------------------- the same by school mathematics: no library, no arrays, 30 digits


def turned(x, angle):
    z = mpmath.mpc(*x) * mpmath.expj(angle)
    return z.real, z.imag


def rotate(x, m, theta):
    return turned(x, m * mpmath.mpf(str(theta)))


def score(q, k, m, n):
    total = 0
    for pair, theta in ((0, mpmath.mpf(1)), (1, 1 / mpmath.mpf(100))):
        a, b = turned(q[2 * pair : 2 * pair + 2], m * theta), turned(k[2 * pair : 2 * pair + 2], n * theta)
        total += a[0] * b[0] + a[1] * b[1]
    return (total / mpmath.sqrt(4),)


def wavelength(pair, head_dim, base):
    return (2 * mpmath.pi * mpmath.exp(mpmath.mpf(2 * pair) / head_dim * mpmath.log(base)),)


def position_interpolation(position, pair, factor):
    return (mpmath.mpf(position) * 1024 / (1024 * factor) / mpmath.mpf(10) ** pair,)


def ntk_frequency(head_dim, share, factor):
    pair = 1 + math.floor(share * (head_dim // 2 - 2))
    base = 10_000 * mpmath.mpf(factor) ** (mpmath.mpf(head_dim) / (head_dim - 2))
    return (base ** (-mpmath.mpf(2 * pair) / head_dim),)


def yarn_frequency(theta, length, factor):
    theta = mpmath.mpf(str(theta))
    rotations = length * theta / (2 * mpmath.pi)
    share = min(1, max(0, (rotations - 1) / (32 - 1)))
    return (theta * (share + (1 - share) / factor),)


def rms_norm(x):
    root = mpmath.sqrt(mpmath.mpf(sum(v * v for v in x)) / len(x))
    return tuple(v / root for v in x)


def layer_norm(x):
    mean = Fraction(sum(x), len(x))
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    root = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
    return tuple(mpmath.mpf((v - mean).numerator) / (v - mean).denominator / root for v in x)


def rms_norm_gradient(x, g):
    """By differences of the loss itself, at 30 digits."""

    def loss(point):
        root = mpmath.sqrt(sum(v * v for v in point) / len(point))
        return sum(a * v / root for a, v in zip(g, point, strict=True))

    step = mpmath.mpf(10) ** -10
    gradient = []
    for place in range(len(x)):
        ends = [[mpmath.mpf(v) + sign * step * (i == place) for i, v in enumerate(x)] for sign in (1, -1)]
        gradient.append((loss(ends[0]) - loss(ends[1])) / (2 * step))
    return tuple(gradient)


def swiglu_value(x, gate, up):
    g, u = (sum(a * b for a, b in zip(x, column, strict=True)) for column in (gate, up))
    return (mpmath.mpf(g) / (1 + mpmath.exp(-g)) * u,)


def d_ff(d, multiple_of, tenths):
    width = (2 * 4 * d // 3) * tenths // 10
    while width % multiple_of:
        width += 1
    return (width,)


def matrices_of_a_layer(d, heads, groups, f):
    head = d // heads
    return [(d, heads * head), (d, groups * head), (d, groups * head), (heads * head, d), (d, f), (d, f), (f, d)]


def layer_parameters(**sizes):
    return (sum(rows * columns for rows, columns in matrices_of_a_layer(**sizes)) + 2 * sizes["d"],)


def model_parameters(layers, vocabulary, **sizes):
    return (layers * layer_parameters(**sizes)[0] + vocabulary * sizes["d"] + sizes["d"],)


def kv_bytes(layers, heads, groups, head_dim, tokens):
    return (sum(2 for _ in range(layers) for _ in ("key", "value") for _ in range(groups)) * head_dim * tokens,)


def flops_per_token(layers, vocabulary, context, **sizes):
    products = layers * sum(rows * columns for rows, columns in matrices_of_a_layer(**sizes)) + vocabulary * sizes["d"]
    products += layers * sizes["heads"] * 2 * context * (sizes["d"] // sizes["heads"])
    return (2 * products,)


ORACLES = (
    rotate,
    score,
    wavelength,
    position_interpolation,
    ntk_frequency,
    yarn_frequency,
    rms_norm,
    layer_norm,
    rms_norm_gradient,
    swiglu_value,
    d_ff,
    layer_parameters,
    model_parameters,
    kv_bytes,
    flops_per_token,
)


@pytest.fixture(scope="module")
def cases():
    made = {}

    def of(drill):
        if drill.name not in made:
            made[drill.name] = [drill.case(seed) for seed in SEEDS]
        return made[drill.name]

    return of


def test_every_drill_has_an_oracle_and_a_name_of_its_own():
    assert [oracle.__name__ for oracle in ORACLES] == [drill.name for drill in DRILLS]
    assert len({drill.title for drill in DRILLS}) == len(DRILLS)


@pytest.mark.parametrize(("drill", "oracle"), list(zip(DRILLS, ORACLES, strict=True)), ids=[d.name for d in DRILLS])
def test_answers_are_those_of_an_independent_calculation(drill, oracle, cases):
    with mpmath.workdps(30):
        for case in cases(drill):
            wanted = oracle(**case.values)
            assert len(wanted) == len(case.right)
            for got, want in zip(case.right, wanted, strict=True):
                if drill.kind == "real":
                    # √ε of the norms' library functions is felt at 1e-15 and no sooner.
                    assert abs(mpmath.mpf(got.numerator) / got.denominator - want) <= 1e-12 * max(1, abs(want))
                else:
                    assert got == want


@every_drill
def test_right_answer_and_slips_are_apart(drill, cases):
    assert len(drill.slips) >= 4
    assert len({slip.name for slip in drill.slips}) == len({slip.message for slip in drill.slips}) == len(drill.slips)
    for case in cases(drill):
        every = [case.right, *case.slipped]
        size = max(abs(number) for number in case.right)
        for place, one in enumerate(every):
            for other in every[:place]:
                assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > APART * size


def typed(numbers, digits):
    return ", ".join(f"{float(number):.{digits}g}" for number in numbers)


def rounded(case, numbers, digits):
    """Return numbers as they are typed: counts in full or rounded, vectors to decimals of the largest."""
    if case.drill.kind != "real":
        return f"{float(numbers[0]):.{digits - 1}e}"
    largest = max(abs(float(number)) for number in numbers)
    decimals = max(0, digits - 1 - math.floor(math.log10(largest))) if largest else 0
    return ", ".join(f"{float(number):.{decimals}f}" for number in numbers)


@every_drill
@pytest.mark.parametrize("digits", [3, 4, 6])
def test_the_right_answer_passes_in_any_sensible_rounding(drill, digits, cases):
    for case in cases(drill)[:50]:
        verdict = case.check(rounded(case, case.right, digits))
        assert verdict.passed, (case.task, rounded(case, case.right, digits), verdict)
        assert case.shown in verdict.message


@every_drill
@pytest.mark.parametrize("digits", [3, 6])
def test_each_slip_is_named(drill, digits, cases):
    for case in cases(drill)[:50]:
        for slip, numbers in zip(drill.slips, case.slipped, strict=True):
            verdict = case.check(rounded(case, numbers, digits))
            assert (verdict.passed, verdict.mistake, verdict.message) == (False, slip.name, slip.message)


@every_drill
def test_each_slip_is_named_as_it_is_printed(drill, cases):
    for case in cases(drill)[:50]:
        for slip, printed in zip(drill.slips, case.slipped_shown, strict=True):
            assert case.check(printed.partition(" bytes")[0]).mistake == slip.name, printed


@every_drill
def test_unknown_numbers_are_refused_without_a_name(drill, cases):
    for case in cases(drill)[:50]:
        every = [case.right, *case.slipped]
        far = 7 * max(abs(number) for numbers in every for number in numbers) + 1
        verdict = case.check(", ".join(f"{float(far):.6e}" for _ in case.right))
        assert (verdict.passed, verdict.mistake) == (False, None)


@every_drill
def test_a_seed_gives_the_same_case_and_others_give_others(drill, cases):
    tasks = [case.task for case in cases(drill)]
    assert drill.case(7).task == tasks[7]
    assert len(set(tasks)) > 30
    assert drill.case().task


@every_drill
def test_tasks_and_workings_can_be_shown(drill, cases):
    for case in cases(drill)[:20]:
        assert case.task.count("$") % 2 == case.working.count("$") % 2 == 0
        assert case.working.endswith(f"**{case.shown}**")
        assert "nan" not in case.working
        assert re.fullmatch(r"\d\d_\w+", drill.notebook)


@every_drill
@pytest.mark.parametrize("text", ["", "x", "1, 2, 3, 4, 5, 6", "1 furlong", "1/0", "--1", "1e99", "nan", "inf"])
def test_what_cannot_be_read_is_told_and_is_no_mistake(drill, text):
    verdict = drill.case(3).check(text)
    assert (verdict.passed, verdict.mistake) == (False, "unreadable")
    assert "want" in verdict.message


def test_a_sign_and_a_close_number_are_told():
    drill = next(drill for drill in DRILLS if drill.name == "wavelength")
    case = drill.case(0)
    assert case.check(f"{float(-case.right[0]):.6f}").mistake == "sign"
    assert case.check(f"{float(case.right[0]) * 1.01:.6f}").mistake == "rounding"


def test_a_count_in_full_must_be_exact_and_a_rounded_one_need_not():
    case = next(drill for drill in DRILLS if drill.name == "model_parameters").case(0)
    total = int(case.right[0])
    assert case.check(f"{total:,}").passed
    assert case.check(f"{total / 1e6:.1f}M").passed
    assert case.check(f"{total / 1e6:.3g} M").passed
    assert not case.check(str(total + 1)).passed
    assert case.check(str(total + 1)).mistake == "rounding"


def test_bytes_are_taken_in_binary_and_decimal_units():
    case = next(drill for drill in DRILLS if drill.name == "kv_bytes").case(0)
    total = int(case.right[0])
    for answer in (str(total), f"{total:,} bytes", f"{total / 2**20:.10g} MiB", f"{total / 1e6:.6f} MB"):
        assert case.check(answer).passed, answer
    power, binary, decimal = next(
        p for p in ((30, "GiB", "GB"), (20, "MiB", "MB"), (10, "KiB", "kB")) if total >= 2 ** p[0]
    )
    assert case.check(f"{total / 2**power:.6g} {decimal}").mistake == "binary number, decimal unit"
    assert case.check(f"{total / 10 ** (power * 3 // 10):.6g} {binary}").mistake == "decimal number, binary unit"


def test_a_drill_whose_slip_is_right_finds_no_case():
    drill = Drill("d", "D", "04_rope", lambda rng: {"a": 1.0}, lambda a: "", lambda a: a, lambda a: "",
                  (Slip("s", lambda a: a * 1.001, "m"),))  # fmt: skip
    with pytest.raises(RuntimeError, match="d: no telling numbers"):
        drill.case(0)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed"):
        DRILLS[0].case(-1)
