"""The published LongRoPE factors, and their resampling."""

import numpy as np
import pytest

from transformer_parts.maths.context_extension import longrope
from transformer_parts.models import phi3_longrope as phi3


def test_the_published_lists():
    """48 pairs; searched in steps of 0.05 and 0.01, never falling, and the long ones beyond s = 32."""
    short, long = np.array(phi3.SHORT), np.array(phi3.LONG)
    assert short.shape == long.shape == (phi3.HEAD_DIM // 2,)
    assert (np.diff(short) >= 0).all()
    assert (np.diff(long) >= 0).all()
    np.testing.assert_allclose(np.round(20 * short), 20 * short, atol=1e-9)
    assert (short[0], short[-1], long[0], long[-1]) == (1.05, 2.95, 1.03, 64.81)
    assert (short.sum(), long.sum()) == pytest.approx((93.35, 1513.02))
    assert phi3.EXTENDED_LENGTH / phi3.TRAINED_LENGTH == 32


def test_resampling_keeps_the_published_pairs_and_both_ends():
    short, long = phi3.factors_for(48)
    np.testing.assert_allclose(short, phi3.SHORT, rtol=1e-12)
    np.testing.assert_allclose(long, phi3.LONG, rtol=1e-12)
    for pairs in (2, 7, 64):
        short, long = phi3.factors_for(pairs)
        assert len(short) == len(long) == pairs
        assert (short[0], short[-1], long[0], long[-1]) == (1.05, 2.95, 1.03, 64.81)
        assert longrope(2 * pairs, 5000, 4096, short, long, factor=32).inv_freq.shape == (pairs,)
    with pytest.raises(ValueError, match=r"^pairs: got 0, want"):
        phi3.factors_for(0)
