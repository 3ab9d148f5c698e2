"""What stands in the pictures of notebook 15, read back from their artists."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

from transformer_parts.draw.stability import (
    LEFT,
    NORMED,
    PLAIN,
    TAKEN,
    Curve,
    Depth,
    Growth,
    LogitGrowthView,
    Runs,
    RunsView,
    StreamDepthView,
)
from transformer_parts.maths.stability import StreamVariance, grown_attention


def depth(n_layers: int, size: float = 1.0) -> Depth:
    branches = size * np.linspace(0.5, 1.5, 2 * n_layers)
    plain = StreamVariance(0.1 + np.concatenate([[0], np.cumsum(branches) * 1.1]), branches)
    scaled = StreamVariance(0.1 + np.concatenate([[0], np.cumsum(branches / 9)]), branches / 9)
    return Depth(scaled, plain, 1 / 3, 0.5)


@pytest.mark.parametrize("n_layers", [1, 7, 16])
def test_stream_has_a_point_before_and_after_each_branch(n_layers):
    view, data = StreamDepthView(), depth(n_layers)
    view.frame(data)
    for run, curve, dashed, share in zip(
        (data.scaled, data.unscaled), view.curves, view.dashed, view.shares, strict=True
    ):
        assert_allclose(curve.get_xdata(), np.arange(2 * n_layers + 1) / 2)
        assert_allclose(curve.get_ydata(), run.stream)
        assert_allclose(dashed.get_ydata(), run.independent)
        assert_allclose(share.get_ydata(), run.branches / run.stream[1:])
    low, high = view.variance_axes.get_ylim()
    assert 0 < low <= data.scaled.stream.min() < data.unscaled.stream.max() < high
    assert view.variance_axes.get_xlim()[1] > n_layers
    assert view.variance_axes.get_xlim() == view.share_axes.get_xlim()


def test_limits_of_the_stream_stand_still_for_a_while():
    view = StreamDepthView()
    seen = set()
    for n_layers in range(1, 17):
        view.update(depth(n_layers))
        seen.add((view.variance_axes.get_xlim(), view.variance_axes.get_ylim()))
    assert len(seen) <= 7


def growth(dtype: str = "float32", chosen: int = 2) -> Growth:
    query, key = np.random.default_rng(0).standard_normal((2, 9, 16))
    factors = np.array([0.1, 1.0, 10.0, 1000.0])
    plain, normed = (grown_attention(query, key, factors, qk_norm=on, dtype=dtype) for on in (False, True))
    ceiling = 65504 / 4 if dtype == "float16" else np.inf
    return Growth(factors, normed, plain, chosen, 4.0, ceiling, 1.5, 0.0)


def test_growth_draws_both_heads_and_marks_the_factor():
    view, data = LogitGrowthView(), growth()
    view.frame(data)
    for colour, run in ((PLAIN, data.plain), (NORMED, data.normed)):
        for axes, values in ((view.logit_axes, run.largest), (view.entropy_axes, run.entropy)):
            line, mark = view.curves[axes, colour]
            assert_allclose(line.get_ydata(), values)
            assert_allclose((mark.get_xdata()[0], mark.get_ydata()[0]), (10.0, values[2]))
            assert mark.get_marker() == {PLAIN: "s", NORMED: "o"}[colour]
    assert_allclose(view.bound.get_ydata(), 4)
    assert_allclose(view.uniform.get_ydata(), 1.5)
    assert np.isnan(view.ceiling.get_ydata()).all()


def test_a_head_that_overflowed_has_no_point_and_blue_rows():
    view, data = LogitGrowthView(), growth("float16", 3)
    view.frame(data)
    assert_allclose(view.ceiling.get_ydata(), 65504 / 4)
    assert np.isnan(view.curves[view.logit_axes, PLAIN][1].get_ydata()).all()
    colours = view.maps[PLAIN].colours.view(np.uint8).reshape(9, 9, 4).astype(int)
    lost = np.isnan(data.plain.weights[3]).any(axis=-1)
    assert lost.any()
    bluer = colours[..., 2] > colours[..., 0] + 40
    assert (bluer.all(axis=1) == lost).all()


def runs(**changes) -> Runs:
    steps = np.arange(4, 44, 4)

    def one(scale):
        return Curve(steps, scale * np.linspace(3, 1, 10), scale * np.linspace(1, 9, 10))

    return Runs(
        **{
            "taken": (one(1.0), one(1.1)),
            "left": (one(1.3), one(1.4), one(1.5)),
            "guess": 2.77,
            "last": 40,
            "symbol": "$H$",
            "logarithmic": False,
            "limits": (0.0, 20.0),
            "highest_loss": 5.0,
            "place": 12,
            "line": 1.0,
        }
        | changes
    )


def test_runs_draw_the_chosen_one_thick_and_mark_the_step():
    view, data = RunsView(), runs()
    view.frame(data)
    for colour, curves in ((TAKEN, data.taken), (LEFT, data.left)):
        for axes, name in ((view.loss_axes, "loss"), (view.watched_axes, "watched")):
            lines = view.curves[axes, colour]
            for line, curve in zip(lines, curves, strict=False):
                assert_allclose(line.get_ydata(), getattr(curve, name))
            assert lines[0].get_linewidth() > lines[1].get_linewidth()
            assert all(not len(line.get_xdata()) for line in lines[len(curves) :])
            mark = view.marks[axes, colour]
            assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (12, getattr(curves[0], name)[2])
    assert_allclose(view.guess.get_ydata(), 2.77)
    assert view.symbol.get_text() == "$H$"


def test_runs_change_scale_symbol_and_band():
    view = RunsView()
    plain = view.frame(runs())
    steps = np.arange(4, 44, 4)
    spread = Curve(steps, np.ones(10), np.full(10, 2.0), (np.full(10, 1.0), np.full(10, 3.0)))
    banded = view.frame(runs(taken=(spread,)))
    logarithmic = view.frame(runs(logarithmic=True, limits=(0.1, 100.0), symbol=r"$\Vert g\Vert$"))
    assert view.watched_axes.get_yscale() == "log"
    assert view.frame(runs()) == plain
    assert len({plain, banded, logarithmic}) == 3


def test_a_run_that_ended_has_no_mark_beyond_its_end_and_none_has_one_before_it_begins():
    view = RunsView()
    short = Curve(np.array([4, 8]), np.array([3.0, 9.0]), np.array([1.0, 2.0]))
    nothing = Curve(np.array([], int), np.array([]), np.array([]))
    view.frame(runs(left=(short,), taken=(nothing,)))
    for colour in (LEFT, TAKEN):
        assert not len(view.marks[view.loss_axes, colour].get_xdata())
    view.frame(runs(left=(short,), taken=(), place=None))
    assert view.marks[view.loss_axes, LEFT].get_xdata() == [8]


@pytest.mark.parametrize(
    ("view", "data", "other"),
    [
        (StreamDepthView, depth(4), depth(6, 2.0)),
        (RunsView, runs(), runs(taken=(), left=(), guess=2.0, last=80, symbol="$x$", logarithmic=True,
                                limits=(0.5, 50.0), highest_loss=9.0, place=20, line=3.0)),
    ],
    ids=["stream", "runs"],
)  # fmt: skip
def test_every_field_is_drawn(view, data, other):
    view = view()
    seen = {view.frame(data)}
    drawn = [field.name for field in dataclasses.fields(data) if field.name not in ("factor", "gain", "words")]
    for name in drawn:
        changed = {"limits": (0.5, 50.0)} if name == "logarithmic" else {}
        seen.add(view.frame(dataclasses.replace(data, **{name: getattr(other, name)} | changed)))
    assert len(seen) == 1 + len(drawn)
