"""The exercises of notebook 03: right answers pass, each known mistake is named, anything else is refused."""

import math

import numpy as np
import pytest

from transformer_parts.learn import relative_bias as exercises

EXERCISES = {"BUCKET": exercises.BUCKET, "SLOPES": exercises.SLOPES, "ATTEND": exercises.ATTEND}
MISTAKES = [
    pytest.param(exercise, mistake, id=f"{name}: {mistake.name}")
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
]
SEEDS = range(12)


def bucket_as_readers_write_it(relative_position, num_buckets, max_distance):
    n = num_buckets // 2
    e = n // 2
    out = []
    for offset in relative_position:
        d = abs(int(offset))
        b = d if d < e else min(n - 1, e + int(math.log(d / e) / math.log(max_distance / e) * (n - e)))
        out.append(b + n if offset > 0 else b)
    return out


def slopes_as_readers_write_it(n):
    p = 2 ** math.floor(math.log2(n))
    return [2 ** (-8 * h / p) for h in range(1, p + 1)] + [2 ** (-4 * (2 * h + 1) / p) for h in range(n - p)]


def attend_as_readers_write_it(query, key, value, bias):
    logits = np.where(np.tri(query.shape[1], dtype=bool), query @ key.transpose(0, 2, 1) + bias, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


RIGHT = {
    "BUCKET": bucket_as_readers_write_it,
    "SLOPES": slopes_as_readers_write_it,
    "ATTEND": attend_as_readers_write_it,
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
@pytest.mark.parametrize("cases", [1, 8])
def test_each_mistake_is_named_whatever_the_inputs(exercise, mistake, cases):
    for seed in SEEDS:
        verdict = exercise.check(mistake.function, seed=seed, cases=cases)
        assert (verdict.passed, verdict.mistake) == (False, mistake.name)
        assert verdict.message == mistake.message


@pytest.mark.parametrize("name", EXERCISES)
def test_other_wrong_answers_are_refused(name):
    exercise, right = EXERCISES[name], RIGHT[name]

    def stops(*arguments):
        raise ZeroDivisionError("by zero")

    wrong = {
        "nothing returned": lambda *arguments: ...,
        "shape": lambda *arguments: np.asarray(right(*arguments))[:1],
        "not finite": lambda *arguments: np.asarray(right(*arguments)) * np.nan,
        "no numbers": lambda *arguments: "y",
    }
    for mistake, function in wrong.items():
        assert exercise.check(function, seed=1).mistake == mistake
    assert exercise.check(lambda *arguments: None, seed=1).mistake == "nothing returned"
    assert "ZeroDivisionError: by zero" in exercise.check(stops, seed=1).message
    verdict = exercise.check(lambda *arguments: np.asarray(right(*arguments)) + 1e-3, seed=1)
    assert (verdict.passed, verdict.mistake) == (False, None)


def test_a_changed_input_is_told():
    def sorts(relative_position, num_buckets, max_distance):
        relative_position.sort()
        return bucket_as_readers_write_it(relative_position, num_buckets, max_distance)

    def scales(query, key, value, bias):
        query *= 2
        return attend_as_readers_write_it(query / 2, key, value, bias)

    assert exercises.BUCKET.check(sorts, seed=1).mistake == "input changed"
    assert exercises.ATTEND.check(scales, seed=1).mistake == "input changed"


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_and_messages_are_all_different(name):
    assert len({EXERCISES[name].hint(step) for step in (1, 2, 3)}) == 3
    with pytest.raises(ValueError, match="step: got 4, want"):
        EXERCISES[name].hint(4)
    mistakes = EXERCISES[name].mistakes
    assert len({mistake.message for mistake in mistakes}) == len(mistakes) >= 5
