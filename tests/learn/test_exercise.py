"""The contract of an exercise: right passes, a known mistake is named, anything else is refused in plain words."""

import re
from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.learn.exercise import Exercise, Mistake, Verdict


def double(x, n):
    return 2 * x + n


EXERCISE = Exercise(
    task="double(x, n): twice x, plus n",
    solution=double,
    inputs=lambda rng: (rng.standard_normal(int(rng.integers(2, 6))), int(rng.integers(2, 9))),
    mistakes=(
        Mistake("identity", lambda x, n: x, "Nothing happened."),
        Mistake("squared", lambda x, n: x**2 + n, "That is the square <b>of x</b>."),
        Mistake("forgot n", lambda x, n: 2 * x, "Where is n?"),
    ),
    hints=("Add x to x.", "2 * x + n"),
    tolerance=1e-9,
)


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_right_answer_passes(seed):
    verdict = EXERCISE.check(lambda x, n: x + n + x, seed=seed)
    assert verdict.passed
    assert verdict.mistake is None
    assert "8 unseen inputs" in verdict.message


@pytest.mark.parametrize("mistake", EXERCISE.mistakes, ids=lambda mistake: mistake.name)
def test_known_mistakes_are_named(mistake):
    verdict = EXERCISE.check(mistake.function)
    assert verdict == Verdict(False, mistake.message, mistake.name)


def test_lists_and_scalars_are_results_too():
    assert EXERCISE.check(lambda x, n: double(x, n).tolist()).passed
    assert Exercise("one", lambda x: float(x.sum()), lambda rng: (rng.random(3),), (), ()).check(sum).passed


@pytest.mark.parametrize(
    ("function", "words", "name"),
    [
        (lambda x, n: None, "Nothing came back yet", "nothing returned"),
        (lambda x, n: ..., "Nothing came back yet", "nothing returned"),
        (lambda x, n: "twice", "returned str, want numbers", "no numbers"),
        (lambda x, n: [[1.0], [2.0, 3.0]], "returned list, want numbers", "no numbers"),
        (lambda x, n: double, "returned function, want numbers", "no numbers"),
        (lambda x, n: double(x, n).astype(complex), "complex numbers, want real", "complex"),
        (lambda x, n: double(x, n)[:-1], "has shape", "shape"),
        (lambda x, n: double(x, n)[None], "has shape", "shape"),
        (lambda x, n: double(x, n).sum(), "has shape ()", "shape"),
        (lambda x, n: x * np.nan, "NaN or infinity", "not finite"),
        (lambda x, n: x + np.inf, "NaN or infinity", "not finite"),
        (lambda x, n: double(x, n) + 1e-3, "largest difference", None),
        (lambda x: 2 * x, "TypeError", None),
        (lambda x, n: 1 / 0, "ZeroDivisionError: division by zero", None),
        (lambda x, n: x[99], "IndexError", None),
    ],
)
def test_other_answers_are_refused_in_words(function, words, name):
    verdict = EXERCISE.check(function)
    assert not verdict.passed
    assert words in verdict.message
    assert verdict.mistake == name


def test_input_changed_in_place_is_refused_though_the_result_is_right():
    def in_place(x, n):
        x *= 2
        x += n
        return x

    assert EXERCISE.check(in_place).mistake == "input changed"


def test_reader_cannot_spoil_the_comparison_through_the_input():
    """A function that changes its input and returns something else is still compared with the untouched input."""
    verdict = EXERCISE.check(lambda x, n: x.fill(0.0))
    assert not verdict.passed


def test_result_may_come_in_an_array_that_is_used_again():
    kept = np.empty(9)

    def reuses(x, n):
        kept[: len(x)] = double(x, n)
        return kept[: len(x)]

    assert EXERCISE.check(reuses).passed


def test_one_wrong_case_among_many_is_found():
    calls = []

    def once_wrong(x, n):
        calls.append(n)
        return double(x, n) + (len(calls) == 8)

    assert not EXERCISE.check(once_wrong, cases=8).passed
    assert len(calls) == 8


def test_two_mistakes_in_turn_are_not_taken_for_one():
    calls = []

    def mixed(x, n):
        calls.append(n)
        return x if len(calls) % 2 else 2 * x

    assert EXERCISE.check(mixed).mistake is None


def test_tolerance_is_the_line():
    """Whether it is given or not: most exercises leave it at its default."""
    default = replace(EXERCISE, tolerance=Exercise.tolerance)
    for exercise, line in ((default, 1e-9), (replace(EXERCISE, tolerance=1e-6), 1e-6)):
        assert exercise.check(lambda x, n, off=line / 2: double(x, n) + off).passed
        assert not exercise.check(lambda x, n, off=2 * line: double(x, n) + off).passed


def test_inputs_are_those_of_the_seed_and_otherwise_new():
    def seen(**options):
        kept = []
        EXERCISE.check(lambda x, n: kept.append((x.tolist(), n)) or double(x, n), **options)
        return kept

    assert seen(seed=3) == seen(seed=3)
    assert seen(seed=3) != seen(seed=4)
    assert seen() != seen()
    assert len(seen(cases=3)) == 3


def test_a_call_leaves_the_reader_s_arrays_his_own():
    kept = []

    def keeps(x, n):
        kept.append(x)
        return double(x, n)

    EXERCISE.check(keeps, seed=1)
    before = [x.copy() for x in kept]
    EXERCISE.check(keeps, seed=1)
    assert all(np.array_equal(one, other) for one, other in zip(before, kept, strict=False))


def test_hints_come_in_steps():
    assert [EXERCISE.hint(), EXERCISE.hint(2)] == list(EXERCISE.hints)


@pytest.mark.parametrize("step", [0, -1, 3, 1.5, "1"])
def test_hint_that_is_not_there_is_refused(step):
    with pytest.raises(ValueError, match="step"):
        EXERCISE.hint(step)


@pytest.mark.parametrize("options", [{"cases": 0}, {"cases": -1}, {"cases": 2.5}])
def test_number_of_cases_is_checked(options):
    with pytest.raises(ValueError, match="cases"):
        EXERCISE.check(double, **options)


@pytest.mark.parametrize("function", [None, 3, "double"])
def test_what_cannot_be_called_is_refused(function):
    with pytest.raises(ValueError, match="function"):
        EXERCISE.check(function)


def test_verdict_is_shown_as_words_and_escaped():
    verdict = EXERCISE.check(lambda x, n: x**2 + n)
    assert repr(verdict) == "✗ That is the square <b>of x</b>."
    assert verdict._repr_html_() == '<p role="status">✗ That is the square &lt;b&gt;of x&lt;/b&gt;.</p>'
    assert repr(EXERCISE.check(double)).startswith("✓ Right")


@pytest.mark.parametrize("answer", ["3.0", b"3.0", np.datetime64("2020-01-01"), 10**400])
def test_what_is_no_number_is_not_read_as_one(answer):
    verdict = EXERCISE.check(lambda *_: answer)
    assert not verdict.passed
    assert verdict.mistake == "no numbers"


def test_a_result_that_cannot_be_read_is_no_number():
    class Stubborn:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("no")

    assert EXERCISE.check(lambda *_: Stubborn()).mistake == "no numbers"


def test_leaving_is_an_answer_too():
    def leave(*_):
        raise SystemExit

    assert "SystemExit" in EXERCISE.check(leave).message


def test_the_line_that_failed_is_named():
    source = "def answer(x, n):\n    y = x\n    return y + undefined\n"
    scope = {}
    exec(compile(source, "<cell>", "exec"), scope)
    assert "(line 3 of its cell)" in EXERCISE.check(scope["answer"]).message


def test_a_result_in_float32_is_told_so():
    verdict = EXERCISE.check(lambda x, n: double(x, n).astype(np.float32))
    assert (verdict.passed, verdict.mistake) == (False, "precision")


def test_a_large_count_that_is_one_too_high_is_no_matter_of_precision():
    count = Exercise("count(n): n", lambda n: n, lambda rng: (int(rng.integers(10**7, 10**9)),), (), ())
    verdict = count.check(lambda n: n + 1)
    assert (verdict.passed, verdict.mistake) == (False, None)
    assert "largest difference from the right result is 1." in verdict.message


# ---------------------------------------------------------------- what an exercise shows of itself


SHOWN = replace(
    EXERCISE,
    takes=("`x`: an array of shape (T,)", "`n`: a whole number, n < 9"),
    returns="an array like `x`",
    mistakes=(Mistake("squared", lambda x, n: x**2 + n, "secret of the mistake"),),
    hints=("secret hint",),
)


def test_an_exercise_shows_its_contract_and_the_shapes_of_a_case():
    arrays, n = EXERCISE.inputs(np.random.default_rng(0))
    case = f"`x {arrays.shape}, n {n} → {arrays.shape}`"
    assert repr(SHOWN).splitlines() == [
        "double(x, n): twice x, plus n",
        "  given: `x`: an array of shape (T,)",
        "  given: `n`: a whole number, n < 9",
        "  returned: an array like `x`",
        f"  one case: {case}",
    ]
    html = SHOWN._repr_html_()
    assert html.startswith("<p><code>double(x, n)</code>: twice x, plus n</p><ul><li>given: <code>x</code>: an array")
    assert "n &lt; 9</li>" in html
    assert html.endswith(f"<li>one case: <code>{case.strip('`')}</code></li></ul>")


def test_an_exercise_gives_nothing_away():
    for text in (repr(SHOWN), str(SHOWN), SHOWN._repr_html_(), f"{[SHOWN]}"):
        assert not re.search("secret|squared|lambda|function|0x", text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.zeros((2, 3)), "(2, 3)"),
        ([1, 2], "(2,)"),
        (0.1 + 0.2, "0.3"),
        (np.float64(1e-9), "1e-09"),
        (7, "7"),
        (True, "True"),
        ("split", "'split'"),
        (None, "None"),
        (EXERCISE, "Exercise"),
    ],
)
def test_values_of_a_case_are_short(value, shown):
    exercise = Exercise("f(a): x", lambda a: 1, lambda rng: (value,), (), ())
    assert f"`a {shown} → 1`" in repr(exercise)
