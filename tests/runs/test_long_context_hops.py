"""Chains of two hops: what is asked has its answer in the pairs, and a short piece of the recording run anew."""

import numpy as np
import pytest

from transformer_parts.maths.initialization import initial_weights
from transformer_parts.runs import long_context_hops as hops
from transformer_parts.runs import recorded


@pytest.mark.parametrize("count", [1, 5, 20])
def test_answers_follow_from_the_pairs(rng, count):
    tokens, targets, found = hops.chains(rng, 11, count=count)
    assert tokens.shape == targets.shape == found.shape == (11, 7 * count)
    for row, wanted, kinds in zip(tokens, targets, found, strict=True):
        after = dict(row[: 4 * count].reshape(-1, 2).tolist())
        assert len(after) == 2 * count
        assert (wanted[: 4 * count] == -1).all()
        asked = [place for place in range(len(row)) if wanted[place] >= 0]
        assert len(asked) == count
        for place in asked:
            mark, symbol = row[place - 1 : place + 1].tolist()
            assert mark == hops.SYMBOLS - 1 + kinds[place]
            answer = after[symbol] if kinds[place] == 1 else after[after[symbol]]
            assert wanted[place] == row[place + 1] == answer


def test_both_kinds_are_asked_and_no_place_tells_the_answer(rng):
    _, targets, found = hops.chains(rng, 4000)
    share = (found == 2).sum() / (found > 0).sum()
    assert share == pytest.approx(0.5, abs=0.02)
    # The commonest token in any place of the answers is hardly commoner than by chance.
    answers = targets[:, targets[0] >= 0]
    assert max(np.bincount(column, minlength=hops.SYMBOLS).max() for column in answers.T) < 2 * 4000 / hops.SYMBOLS


def test_too_many_chains_are_refused(rng):
    with pytest.raises(ValueError, match="count: got 21"):
        hops.chains(rng, 2, count=21)


def test_shares_are_of_the_answers(monkeypatch):
    like = hops.config()
    weights = initial_weights(like, std=0.1, seed=1)

    def knows_one_hop(_weights, tokens, _like):
        _, targets, kinds = hops.chains(np.random.default_rng(3000 + 4), len(tokens))
        logits = np.zeros((*tokens.shape, like.vocab_size))
        logits[kinds == 1, targets[kinds == 1]] = 1
        logits[kinds == 2, hops.SYMBOLS] = 1
        return logits, None

    monkeypatch.setattr(hops, "forward", knows_one_hop)
    assert hops.tried(weights, like, 4) == {"one hop": 1.0, "two hops": 0.0}


def test_training_begins_as_recorded_and_turns_to_chains():
    recording = recorded.load(hops.NAME)
    series = recording.series["seed 0"]
    np.testing.assert_allclose(hops.measure(0, steps=12)["losses"], series["losses"][:12], rtol=1e-3)
    assert recording.arguments["steps"] == len(series["losses"]) == hops.STEPS
    assert list(series["steps"]) == list(range(hops.TRIED_EVERY, hops.STEPS + 1, hops.TRIED_EVERY))
    assert [len(series[kind]) for kind in hops.KINDS] == [len(series["steps"])] * 2
    like = hops.config()
    batch = hops.batches(0, like)
    assert batch(0)[0].shape == (32, 64)
    assert batch(hops.FIRST)[0].shape == (32, 7 * hops.CHAINS)
