"""The recorded restarts: what the notebook says of them, and the part that another recording has as well."""

import numpy as np
import pytest

from transformer_parts.runs import long_context, recorded
from transformer_parts.runs import long_context_restarts as restarts


@pytest.fixture(scope="module")
def losses():
    series = recorded.load(restarts.NAME).series
    return {every: np.array([series[f"every {every}"][f"part {part}"] for part in restarts.PARTS])
            for every in restarts.EVERY}  # fmt: skip


def test_in_one_piece_it_is_what_the_longer_recording_begins_with(losses):
    plain = recorded.load(long_context.NAME).series["plain"]["window 0"]
    np.testing.assert_allclose(losses[restarts.LENGTH][0], plain[: restarts.LENGTH // restarts.BLOCK], rtol=2e-3)


@pytest.mark.parametrize("every", restarts.EVERY[1:])
def test_nothing_changes_before_the_first_restart_and_every_part_is_worse_after_it(losses, every):
    first = every // restarts.BLOCK
    whole, restarted = losses[restarts.LENGTH], losses[every]
    np.testing.assert_allclose(restarted[:, :first], whole[:, :first], rtol=1e-4)
    assert ((restarted - whole)[:, first:].mean(axis=1) > 0.02).all()
