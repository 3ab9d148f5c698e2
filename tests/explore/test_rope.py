"""The explorers of notebook 04: the worked numbers stand on the screen, and every row is what its label says."""

import math

import numpy as np
import pytest
from panel_table import after, shown

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.readout import number, vector
from transformer_parts.explore.rope import RopeClocks, RopePlane


def test_all_are_in_the_catalogue():
    assert {RopePlane, RopeClocks} <= set(PANELS)


# ---------------------------------------------------------------- the plane

ROWS = (
    "query turned, R(mθ)q",
    "key turned, R(nθ)k",
    "their lengths, as before the turn",
    "inner product before the turn",
    "inner product after it",
    "score: inner product / √2",
)


def test_the_hand_calculation_stands_on_the_screen():
    """θ = π/2, q = (1, 2) at 1, k = (2, 1) at 2: a quarter and a half turn."""
    panel = after(RopePlane(), "By hand: m=1, n=2")
    assert [shown(panel, label) for label in ROWS] == [
        "(-2.000000, 1.000000)",
        "(-2.000000, -1.000000)",
        "2.236068, 2.236068",
        "4.000000",
        "3.000000",
        "2.121320",
    ]


def test_the_same_gap_gives_the_same_score():
    """At 4 the query is where it began, at 5 the key has made a quarter turn more: (−1, 2)."""
    panel = after(RopePlane(), "Same gap: m=4, n=5")
    assert [shown(panel, label) for label in ROWS[:2]] == ["(1.000000, 2.000000)", "(-1.000000, 2.000000)"]
    assert [shown(panel, label) for label in ROWS[3:]] == ["4.000000", "3.000000", "2.121320"]


def test_other_content_gives_another_score():
    """k = (−√5, 0): half a turn brings it to (√5, 0), so that qᵀk goes from −√5 to (−2, 1)·(√5, 0) = −2√5."""
    panel = after(RopePlane(), "Same gap, other content")
    assert shown(panel, "key turned, R(nθ)k").startswith("(2.236068, ")
    before, now, score = (float(shown(panel, label)) for label in ROWS[3:])
    root = math.sqrt(5)
    assert (before, now, score) == pytest.approx((-root, -2 * root, -2 * root / math.sqrt(2)), abs=1e-6)


def test_rows_by_complex_numbers(rng):
    """A turn by an angle is a product with e^{iφ}, an inner product the real part of conj(q)·k."""
    panel = RopePlane()
    for _try in range(5):
        state = {name: control._options_full for name, control in panel.controls.items() if hasattr(control, "index")}
        values = {name: options[rng.integers(len(options))][1] for name, options in state.items()}
        m, n, shift = (int(x) for x in rng.integers(0, 17, 3))
        panel.set(m=m, n=n, shift=shift, **values)
        q, k = (
            values[f"{name}_length"] * np.exp(1j * math.radians(values[f"{name}_direction"]))
            for name in ("query", "key")
        )
        q_now, k_now = (z * np.exp(1j * (p + shift) * values["theta"]) for z, p in ((q, m), (k, n)))
        after_turn = (q_now.conjugate() * k_now).real
        wanted = [
            vector([q_now.real, q_now.imag]),
            vector([k_now.real, k_now.imag]),
            f"{number(abs(q))}, {number(abs(k))}",
            number((q.conjugate() * k).real),
            number(after_turn),
            number(after_turn / math.sqrt(2)),
        ]
        for label, text in zip(ROWS, wanted, strict=True):
            assert numbers(shown(panel, label)) == pytest.approx(numbers(text), abs=2e-6), label


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.strip("()").split(", ")]


# ---------------------------------------------------------------- the clocks

CLOCKS = (
    "fastest pair, θ₀ in rad per position",
    "slowest pair, θ in rad per position",
    "positions for a whole turn, fastest",
    "positions for a whole turn, slowest",
    "turned apart by (n − m)·θ, fastest pair",
    "mean of cos((n − m)·θ) over the pairs",
)


def test_the_example_in_four_dimensions_stands_on_the_screen():
    """Base 10000: θ = 1 and 0.01; from 1 to 3 the pairs turn by 2 and 0.02 rad."""
    panel = after(RopeClocks(), "By hand: head_dim 4")
    assert [shown(panel, label) for label in CLOCKS] == [
        "1.000000",
        "0.01000000",
        f"{2 * math.pi:.2f}",
        f"{200 * math.pi:.2f}",
        "2.000000 rad",
        f"{(math.cos(2) + math.cos(0.02)) / 2:.6f}",
    ]


@pytest.mark.parametrize(("preset", "gap"), [("head_dim 128", 3), ("Far apart", 512)])
def test_clocks_of_a_whole_head(preset, gap):
    panel = after(RopeClocks(), preset)
    theta = [10000 ** (-2 * i / 128) for i in range(64)]
    assert [shown(panel, label) for label in CLOCKS] == [
        "1.000000",
        f"{theta[-1]:.8f}",
        f"{2 * math.pi:.2f}",
        f"{2 * math.pi / theta[-1]:.2f}",
        f"{gap:.6f} rad",
        f"{sum(math.cos(gap * t) for t in theta) / 64:.6f}",
    ]


def test_moving_both_moves_the_hands_and_not_the_gap():
    panel = RopeClocks()
    before = panel.readout.value
    hands = panel.shown.query_angles
    panel.set(shift=100)
    assert panel.readout.value == before
    assert np.allclose(panel.shown.query_angles - hands, 100 * panel.shown.inv_freq)
