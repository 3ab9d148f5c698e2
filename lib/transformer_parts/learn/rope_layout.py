"""Exercises on the two layouts of RoPE's pairs (notebook 06)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import rope_layout


def _reordered(order):
    """Return a function of one head's rows that puts them in the order of ``order(head_dim)``."""
    return lambda w: w[order(len(w))]


def _head_inputs(rng):
    # Three pairs or more: with two, the inverse permutation is right too.  As wide as high, so that columns can be
    # taken for rows.
    head_dim = 2 * int(rng.integers(3, 7))
    return (rng.standard_normal((head_dim, head_dim)),)


def _to_split(head_dim):
    return rope_layout.permutation(head_dim, "split")


def _to_interleaved(head_dim):
    return rope_layout.permutation(head_dim, "interleaved")


PERMUTE_HEAD = Exercise(
    task=_(
        "permute_head(w): move the rows of one head, shape (head_dim, in), from the interleaved to the split layout"
    ),
    solution=_reordered(_to_split),
    inputs=_head_inputs,
    mistakes=(
        Mistake(
            "nothing moved",
            lambda w: w,
            _("Your rows stand where they stood. A reshape alone moves nothing: its two new axes must change places."),
        ),
        Mistake(
            "inverse permutation",
            _reordered(_to_interleaved),
            _("You went from split to interleaved: the inverse. Row 2i goes to place i, so the even rows come first."),
        ),
        Mistake(
            "columns instead of rows",
            lambda w: w[:, _to_split(len(w))],
            _("You moved the columns. In (out, in), as checkpoints have it, the channels of the head are the rows."),
        ),
        Mistake(
            "odd rows first",
            _reordered(lambda d: np.concatenate([np.arange(1, d, 2), np.arange(0, d, 2)])),
            _("You put the odd rows first. The first channel of each pair, 2i, goes to the first half."),
        ),
        Mistake(
            "halves exchanged",
            _reordered(lambda d: np.roll(np.arange(d), d // 2)),
            _("You exchanged the two halves. Rows side by side, 2i and 2i + 1, must come to lie half a head apart."),
        ),
        Mistake(
            "a sign as in the rotation",
            lambda w: np.concatenate([-w[1::2], w[0::2]]),
            _("You moved the rows and turned a sign, as the rotation by a quarter turn does. Weights are only moved."),
        ),
        Mistake(
            "rows in reverse",
            _reordered(lambda d: np.concatenate([np.arange(0, d, 2), np.arange(d - 1, 0, -2)])),
            _("Your second half runs backwards. Pair i is rows i and i + head_dim/2: both halves run the same way."),
        ),
    ),
    hints=(
        _("Rows 2i and 2i + 1 are a pair now. Where must each go so that they are i and i + head_dim/2?"),
        _("All even rows come first, then all odd rows, each in their order."),
        _(
            "w.reshape(head_dim // 2, 2, -1), exchange the first two axes, and reshape back; or concatenate w[0::2] and"
            " w[1::2]."
        ),
    ),
)


def _convert(w, n_heads, to="split"):
    return rope_layout.convert_projection(w, len(w) // n_heads, to, out_axis=0)


def _heads_inputs(rng):
    # As many rows as columns, so that columns can be taken for rows.
    n_heads, head_dim = int(rng.integers(2, 5)), 2 * int(rng.integers(3, 6))
    return rng.standard_normal((n_heads * head_dim, n_heads * head_dim)), n_heads


PERMUTE_HEADS = Exercise(
    task=_("permute_heads(w, n_heads): the same for all heads of a projection, shape (n_heads · head_dim, in)"),
    solution=_convert,
    inputs=_heads_inputs,
    mistakes=(
        Mistake("nothing moved", lambda w, n: w, _("Your rows stand where they stood.")),
        Mistake(
            "across heads",
            lambda w, n: _convert(w, 1),
            _(
                "You treated the whole matrix as one head: even rows of all heads first. Rows must not leave their"
                " head."
            ),
        ),
        Mistake(
            "inverse permutation",
            lambda w, n: _convert(w, n, "interleaved"),
            _("Each head is permuted from split to interleaved: the inverse."),
        ),
        Mistake(
            "only the first head",
            lambda w, n: np.concatenate([_convert(w[: len(w) // n], 1), w[len(w) // n :]]),
            _("Only the first head is converted; every head has its own pairs."),
        ),
        Mistake(
            "heads and channels mixed up",
            lambda w, n: w.reshape(-1, n, 2, w.shape[1]).transpose(1, 2, 0, 3).reshape(w.shape),
            _("You read the rows as (pairs, heads, 2). Heads come first: rows 0 … head_dim − 1 are head 0."),
        ),
        Mistake(
            "columns instead of rows",
            lambda w, n: _convert(w.T, n).T,
            _("You moved the columns. In (out, in) the channels of the heads are the rows; columns are what comes in."),
        ),
    ),
    hints=(
        _("The rows of head h are h·head_dim … (h + 1)·head_dim − 1, with head_dim = len(w) // n_heads."),
        _("Split the rows into (n_heads, head_dim/2, 2, in): which two axes change places?"),
        _("w.reshape(n_heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)"),
    ),
)


def _convert_layer(w_q, w_k, w_v, head_dim, rotary_dim, *, move=(True, True, False), to="split"):
    moved = [
        rope_layout.convert_projection(w, head_dim, to, rotary_dim=rotary_dim, out_axis=0) if moves else w
        for w, moves in zip((w_q, w_k, w_v), move, strict=True)
    ]
    return np.concatenate(moved)


def _heads_of_query_everywhere(w_q, w_k, w_v, head_dim, rotary_dim):
    """Cut W_k into as many heads as W_q has, so that each is too narrow."""
    narrow = len(w_k) * head_dim // len(w_q)
    w_k = rope_layout.convert_projection(w_k, narrow, "split", rotary_dim=min(rotary_dim, narrow), out_axis=0)
    return _convert_layer(w_q, w_k, w_v, head_dim, rotary_dim, move=(True, False, False))


def _last_channels(w_q, w_k, w_v, head_dim, rotary_dim):
    """Permute the last channels of each head instead of the first."""
    order = np.arange(head_dim)
    order[head_dim - rotary_dim :] = head_dim - rotary_dim + rope_layout.permutation(rotary_dim, "split")
    w_q, w_k = (w.reshape(-1, head_dim, w.shape[1])[:, order].reshape(w.shape) for w in (w_q, w_k))
    return np.concatenate([w_q, w_k, w_v])


def _layer_inputs(rng):
    # Half of head_dim is even, for kv heads cut that narrow; at least six rotated channels, for the
    # reason in `_head_inputs`.
    n_kv_heads, head_dim = int(rng.integers(2, 4)), 4 * int(rng.integers(3, 5))
    rotary_dim = int(rng.choice(np.arange(6, head_dim - 1, 2)))
    w_q, w_k, w_v = (rng.standard_normal((n * head_dim, 3)) for n in (2 * n_kv_heads, n_kv_heads, n_kv_heads))
    return w_q, w_k, w_v, head_dim, rotary_dim


CONVERT_LAYER = Exercise(
    task=_(
        "convert_layer(w_q, w_k, w_v, head_dim, rotary_dim): take a layer with grouped kv heads and partial rotary from"
        " the interleaved to the split layout; rows as in checkpoints; return np.concatenate([w_q, w_k, w_v])"
    ),
    solution=_convert_layer,
    inputs=_layer_inputs,
    mistakes=(
        Mistake(
            "nothing moved",
            lambda *layer: _convert_layer(*layer, move=(False, False, False)),
            _("No row has moved."),
        ),
        Mistake(
            "V permuted too",
            lambda *layer: _convert_layer(*layer, move=(True, True, True)),
            _("You moved the rows of W_v. Values are not rotated; W_o expects their channels where they were."),
        ),
        Mistake(
            "K forgotten",
            lambda *layer: _convert_layer(*layer, move=(True, False, False)),
            _("W_q is converted and W_k is not: now their channels do not even meet at offset 0."),
        ),
        Mistake(
            "kv heads counted as query heads",
            _heads_of_query_everywhere,
            _("You cut W_k into as many heads as W_q has. It has fewer: len(w_k) // head_dim."),
        ),
        Mistake(
            "partial channels moved",
            lambda q, k, v, head_dim, rotary_dim: _convert_layer(q, k, v, head_dim, head_dim),
            _("You moved all channels of each head. Only the first rotary_dim are paired; the others stay."),
        ),
        Mistake(
            "the last channels instead of the first",
            _last_channels,
            _("You permuted the last rotary_dim channels of each head; the first ones are turned."),
        ),
        Mistake(
            "inverse permutation",
            lambda *layer: _convert_layer(*layer, to="interleaved"),
            _("You converted from split to interleaved: the inverse."),
        ),
        Mistake(
            "across heads",
            lambda q, k, v, head_dim, rotary_dim: np.concatenate(
                [*(rope_layout.convert_projection(w, len(w), "split", out_axis=0) for w in (q, k)), v]
            ),
            _("You treated each matrix as one head; rows must not leave their head."),
        ),
    ),
    hints=(
        _("Which of the three matrices makes vectors that are rotated?"),
        _("Both have heads of head_dim rows; how many heads each has follows from its number of rows."),
        _("In each head only rows 0 … rotary_dim − 1 move: the even ones, then the odd ones, then the rest as it was."),
    ),
)
