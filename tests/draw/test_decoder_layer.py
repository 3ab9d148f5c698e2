"""The pictures of notebook 14: tiles up to the present step, exact zeros, and what the training saw."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.draw import theme
from transformer_parts.draw.artists import CellNumbers, written
from transformer_parts.draw.decoder_layer import (
    SYMBOLS,
    TILE,
    DecoderCausalityView,
    DecoderTrainingView,
    DecoderWalkView,
    LogMap,
    Losses,
    Moved,
    Walked,
    diagram,
    formula,
)
from transformer_parts.maths.decoder import StackConfig, leak, parameter_counts, random_layer, spread, walk

USUAL = StackConfig(vocab_size=1, n_layers=1, d_model=8, n_heads=4, n_kv_heads=2, d_ff=16)
VARIANTS = [
    USUAL,
    dataclasses.replace(USUAL, rope_base=None),
    dataclasses.replace(USUAL, ffn="relu"),
    dataclasses.replace(USUAL, placement="post", norm="layer"),
    dataclasses.replace(USUAL, placement="post", rope_base=None, ffn="relu"),
]


def walked(config=USUAL, at=17, **changes) -> Walked:
    x = np.random.default_rng(0).standard_normal((2, 3, 8))
    steps = tuple(walk(random_layer(config, std=0.35), x, config))
    settings = {"at": min(at, len(steps) - 1), "entry": 0, "head": 0, "sees": "causal", "changed": 0.0}
    return Walked(steps=steps, config=config, parameters=parameter_counts(config), **settings | changes)


@pytest.fixture(scope="module")
def walk_view():
    """One for all tests: a frame is a function of its data."""
    return DecoderWalkView(1.0)


@pytest.fixture(scope="module")
def causality_view():
    return DecoderCausalityView(1.0)


@pytest.fixture(scope="module")
def training_view():
    return DecoderTrainingView(50, 9, 3.0, 4, 1.0)


# ---------------------------------------------------------------- the walk


@pytest.mark.parametrize("config", VARIANTS)
def test_every_tensor_has_a_place_a_symbol_and_a_formula(config):
    data = walked(config)
    found = diagram([step.name for step in data.steps])
    names = [place.name for place in found.places]
    assert set(names) == {step.name for step in data.steps}
    assert [name for name in set(names) if names.count(name) > 1] == ["U"]
    for step in data.steps:
        assert SYMBOLS[step.name]
        assert formula(step.name, config, masked=True).startswith("$")


@pytest.mark.parametrize("config", VARIANTS)
def test_tiles_do_not_overlap_and_stay_within_the_picture(config):
    found = diagram([step.name for step in walked(config).steps])
    centres = np.array([(place.x, place.y) for place in found.places])
    assert (centres > np.array(TILE) / 2).all()
    assert (centres < np.array(DecoderWalkView.size) - np.array(TILE) / 2).all()
    apart = np.abs(centres[:, None] - centres)
    assert ((apart >= TILE).any(-1) | np.eye(len(centres), dtype=bool)).all()
    for line in (*found.edges, *found.residual):
        assert (np.array(line) >= 0).all()
        assert (np.array(line) <= DecoderWalkView.size).all()


def test_lines_end_at_tiles():
    for config in VARIANTS:
        found = diagram([step.name for step in walked(config).steps])
        for start, *_, end in found.edges:
            assert any(abs(start[0] - p.x) <= TILE[0] / 2 and start[1] == p.y for p in found.places)
            assert any(abs(end[0] - p.x) <= TILE[0] / 2 + 1e-9 for p in found.places)


def test_tensors_that_are_not_there_yet_are_empty(walk_view):
    view = walk_view
    view.frame(walked(at=4))
    shown = {place.name for tile, place in zip(view.tiles, view.places, strict=False) if tile.get_visible()}
    assert shown == {"x", "norm1", "q", "k", "v"}
    view.frame(walked(at=0))
    assert sum(tile.get_visible() for tile in view.tiles) == 1


def test_the_present_tensor_is_framed_and_both_places_of_u(walk_view):
    view = walk_view
    view.frame(walked(at=3))
    assert len(view.outline.get_paths()) == 1
    view.frame(walked(at=11))
    assert len(view.outline.get_paths()) == 2


def test_entry_and_head_choose_what_is_shown():
    data = walked(entry=1, head=3)
    tensors = {step.name: step for step in data.steps}
    assert_array_equal(data.shown(tensors["q"]), tensors["q"].value[1, 3])
    assert_array_equal(data.shown(tensors["k"]), tensors["k"].value[1, 1])  # two query heads read one kv head
    assert_array_equal(data.shown(tensors["x"]), tensors["x"].value[1])


def test_the_bar_counts_the_parameters_used_so_far(walk_view):
    data = walked(at=0)
    assert data.so_far == {"attention": 0, "ffn": 0, "norms": 0}
    total = walked().parameters
    assert walked().so_far == {part: total[part] for part in ("attention", "ffn", "norms")}
    assert walked(at=4).so_far == {"attention": 64 + 32 + 32, "ffn": 0, "norms": 8}
    view = walk_view
    view.frame(walked(at=4))
    assert view.total.get_text() == "136 / 592"
    left, _, width, _ = view.count
    ends = [path.vertices[:, 0].max() for path in view.counted.get_paths()]
    assert_allclose((np.array(ends) - left) / width, np.array([128, 128, 136]) / 592)


def test_numbers_stand_in_cells_that_hold_them(walk_view):
    view = walk_view
    view.frame(walked(at=0))
    data = walked(at=0)
    length = sum(len(written(value)) for value in data.shown(data.now).ravel())
    assert len(view.numbers.get_offsets()) == length
    view.frame(walked(at=13))  # 16 columns are too narrow
    assert len(view.numbers.get_paths()) <= 1


def test_a_frame_depends_on_its_data_alone(walk_view):
    view = walk_view
    first = view.frame(walked())
    for config in VARIANTS:
        for at in (0, 9):
            view.frame(walked(config, at=at))
    assert view.frame(walked()) == first == DecoderWalkView(1.0).frame(walked())


def test_every_field_of_the_walk_is_drawn(walk_view):
    view, data = walk_view, walked(at=8)
    seen = {view.frame(data)}
    other = {
        "steps": tuple(s._replace(value=-s.value) for s in data.steps),
        "at": 9,
        "entry": 1,
        "head": 2,
        "sees": "everything",
        "parameters": {"total": 1000},
    }
    for field, value in other.items():
        seen.add(view.frame(dataclasses.replace(data, **{field: value})))
    seen.add(view.frame(walked(VARIANTS[1], at=8)))
    assert len(seen) == len(other) + 2


def test_written_numbers_fit_their_cells():
    for value in (0.0, -0.004, 9.995, -9.995, 99.96, -123.4, 12345.6):
        assert len(written(value)) <= 6
        assert abs(float(written(value).replace("−", "-")) - value) <= 0.5
    assert written(-0.004) == "0.00"


def test_numbers_are_white_on_dark_cells(walk_view):
    axes = walk_view.large
    numbers = CellNumbers(axes)
    numbers.set_values(np.array([1.0, 2.0]), np.array([[0.2, 0.5], [0.8, 0.5]]), np.array([True, False]))
    assert len(numbers.get_facecolor()) == 8
    assert_allclose(numbers.get_facecolor()[0], (1, 1, 1, 1))
    assert numbers.get_facecolor()[-1][0] < 0.2


# ---------------------------------------------------------------- causality


def moved(sees="causal", token=3, layer=2, length=6) -> Moved:
    config = dataclasses.replace(USUAL, n_heads=2, n_kv_heads=2)
    layers = [random_layer(config, std=0.35, seed=i) for i in range(2)]
    x = np.random.default_rng(1).standard_normal((length, 8))
    found = spread(layers, x, token, np.ones(8), config, sees=sees)
    return Moved(spread=found, token=token, layer=layer, leak=leak(found[-1], token), sees=sees)


def test_exact_zeros_are_white_and_hold_a_zero(causality_view):
    view = causality_view
    view.frame(moved())
    # 5 of 6 positions of the input, 3 of each layer's output
    assert len(view.reach_zeros.get_offsets()) == 5 + 3 + 3
    assert len(view.channel_zeros.get_offsets()) == 3 * 8
    cells = LogMap(view.reach_axes)
    cells.set_sizes(np.array([[0.0, 1e-30, 1e-3, 99.0]]))
    colours = cells.colours.view(np.uint8).reshape(4, 4)
    assert (colours[0] == 255).all()
    assert len({tuple(colour) for colour in colours}) == 4
    luminance = colours[1:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) > 0).all()


def test_what_moved_before_the_token_is_framed_in_red(causality_view):
    view = causality_view
    leaked = view.frames[0][0]
    view.frame(moved())
    assert len(leaked.get_paths()) == 0
    view.frame(moved("everything"))
    assert len(leaked.get_paths()) == 3 * 2
    view.frame(moved("one ahead"))
    assert len(leaked.get_paths()) == 1 + 2
    assert_allclose(leaked.get_edgecolor()[0][:3], np.array([0xB0, 0x4A, 0x5B]) / 255)
    assert theme.SECOND == "#b04a5b"


def test_the_frame_of_the_token_stands_at_its_column(causality_view):
    view = causality_view
    view.frame(moved(token=2, length=5))
    corners = view.frames[1][1].get_paths()[0].vertices
    assert_allclose([corners[:, 0].min(), corners[:, 0].max()], [2 / 5, 3 / 5])


def test_a_causality_frame_depends_on_its_data_alone(causality_view):
    view = causality_view
    first = view.frame(moved())
    view.frame(moved("everything", 0, 1, 12))
    assert view.frame(moved()) == first == DecoderCausalityView(1.0).frame(moved())
    assert len({view.frame(moved(layer=layer)) for layer in (0, 1, 2)}) == 3


# ---------------------------------------------------------------- training


def losses(**changes) -> Losses:
    rng, steps = np.random.default_rng(2), np.arange(0, 60, 10)
    made = {
        "variant": "no mask", "steps": steps, "look": 5, "training": rng.uniform(0, 3, 5),
        "honest": rng.uniform(0, 3, 6), "usual": rng.uniform(0, 3, 6),
        "others": rng.uniform(0, 3, (4, 6)), "honest_at": rng.uniform(0, 3, 9),
        "seen_at": rng.uniform(0, 3, 9), "usual_at": rng.uniform(0, 3, 9), "known_from": 4, "uniform": 3.0,
        "names": ("usual", "no mask", "Post", "no RoPE"), "title": "no mask",
    }  # fmt: skip
    return Losses(**made | changes)


def test_three_lines_stand_where_all_differ(training_view):
    view, data = training_view, losses()
    view.frame(data)
    drawn = {(axes is view.step_axes, colour): line.get_xydata() for (axes, colour), line in view.lines.items()}
    assert_array_equal(drawn[True, theme.FIRST][:, 1], data.usual)
    assert_array_equal(drawn[True, theme.SECOND][:, 1], data.honest)
    assert_array_equal(drawn[True, theme.THIRD], np.stack([data.steps[1:] - 5, data.training], axis=1))
    assert_array_equal(drawn[False, theme.THIRD][:, 1], data.seen_at)
    assert len({line.get_marker() for line in view.lines.values()}) == 3


def test_what_training_sees_is_left_out_where_it_is_the_honest_loss(training_view):
    view, data = training_view, losses()
    view.frame(dataclasses.replace(data, seen_at=data.honest_at))
    assert not len(view.lines[view.position_axes, theme.THIRD].get_xdata())
    view.frame(dataclasses.replace(data, variant="usual", seen_at=data.honest_at))
    assert not len(view.lines[view.position_axes, theme.SECOND].get_xdata())


def test_losses_beyond_the_scale_stay_within_it(training_view):
    view = training_view
    view.frame(losses(honest_at=np.full(9, 40.0)))
    assert view.lines[view.position_axes, theme.SECOND].get_ydata().max() == view.highest


def test_every_field_of_the_losses_is_drawn(training_view):
    view, data = training_view, losses()
    seen = {view.frame(data)}
    fields = ("training", "honest", "usual", "others", "honest_at", "seen_at", "usual_at")
    for field in fields:
        seen.add(view.frame(dataclasses.replace(data, **{field: getattr(data, field) + 0.5})))
    seen.add(view.frame(dataclasses.replace(data, look=1)))
    assert len(seen) == len(fields) + 2
