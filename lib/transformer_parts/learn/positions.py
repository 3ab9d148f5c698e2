"""Exercises on absolute positions (notebook 02)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import positions


def _table_with(
    *,
    first=0,
    exponent=lambda i, d: 2 * i / d,
    angle=lambda p, base, e: p / base**e,
    order=(np.sin, np.cos),
    blocks=False,
):
    """Return the table with one step replaced."""

    def function(seq_len, d_model, base):
        p = np.arange(first, first + seq_len)[:, None]
        angles = angle(p, base, exponent(np.arange(d_model // 2), d_model))
        halves = [turn(angles) for turn in order]
        return np.concatenate(halves, -1) if blocks else np.stack(halves, -1).reshape(seq_len, d_model)

    return function


def _one_frequency_per_channel(seq_len, d_model, base):
    c = np.arange(d_model)
    angles = np.arange(seq_len)[:, None] / base ** (c / d_model)
    return np.where(c % 2, np.cos(angles), np.sin(angles))


def _twice_the_channel(seq_len, d_model, base):
    c = np.arange(d_model)
    angles = np.arange(seq_len)[:, None] / base ** (2 * c / d_model)
    return np.where(c % 2, np.cos(angles), np.sin(angles))


TABLE = Exercise(
    task=_("table(seq_len, d_model, base): the sinusoidal table, shape (seq_len, d_model), as in the paper"),
    solution=positions.sinusoidal,
    inputs=lambda rng: (
        int(rng.integers(5, 12)),
        int(rng.choice([6, 8, 10, 12])),
        float(rng.choice([20.0, 100.0, 1000.0])),
    ),
    mistakes=(
        Mistake(
            "sines first, then cosines",
            _table_with(blocks=True),
            _(
                "Your sines fill the first half and the cosines the second. In the paper they alternate: channel 2i is"
                " a sine, channel 2i + 1 the cosine of the same angle. (Some codes do use halves; the two differ only"
                " by the order of the channels, but a trained model knows one of them.)"
            ),
        ),
        Mistake(
            "exponent without the 2",
            _table_with(exponent=lambda i, d: i / d),
            _(
                "Your exponent is i/d, with i the number of the pair; it is 2i/d, so that the last pair comes near"
                " 1/base."
            ),
        ),
        Mistake(
            "a frequency for each channel",
            _one_frequency_per_channel,
            _(
                "Every channel has a frequency of its own in your table. Sine and cosine of a pair share one: the"
                " exponent is 2i/d for both channels 2i and 2i + 1."
            ),
        ),
        Mistake(
            "twice the channel",
            _twice_the_channel,
            _("You put the channel where the paper has the number of the pair. Channel c belongs to pair i = c // 2."),
        ),
        Mistake(
            "cosine first",
            _table_with(order=(np.cos, np.sin)),
            _("Sine and cosine are exchanged: the even channel is the sine."),
        ),
        Mistake(
            "only sines",
            _table_with(order=(np.sin, np.sin)),
            _("Both channels of a pair are sines. Without the cosine no matrix can move a position on."),
        ),
        Mistake(
            "multiplied by the power",
            _table_with(angle=lambda p, base, e: p * base**e),
            _("You multiply by base^(2i/d); the position is divided by it. High channels must be slow."),
        ),
        Mistake(
            "base as a factor",
            _table_with(angle=lambda p, base, e: p / (1 + base * e)),
            _("You multiply the base by 2i/d. It is a power: base^(2i/d), a fixed ratio from pair to pair."),
        ),
        Mistake(
            "position from 1", _table_with(first=1), _("Your first row is that of position 1. Positions start at 0.")
        ),
        Mistake(
            "base ignored",
            lambda seq_len, d_model, base: positions.sinusoidal(seq_len, d_model),
            _("Your table has base 10000 whatever is passed."),
        ),
        Mistake(
            "a whole turn per unit",
            _table_with(angle=lambda p, base, e: 2 * np.pi * p / base**e),
            _("You multiply the angle by 2π. p/base^(2i/d) is the angle in radians already."),
        ),
    ),
    hints=(
        _("One angle for each position and each pair of channels: an array of shape (seq_len, d_model / 2)."),
        _("np.arange(seq_len)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)"),
        _("out[:, 0::2] = np.sin(angles) and out[:, 1::2] = np.cos(angles)."),
    ),
)


def _shift_with(block, *, exponent=lambda i, d: 2 * i / d, pairs=lambda i, d: (2 * i, 2 * i + 1), power=None):
    """Return the shift matrix with its blocks, frequencies or pairs replaced."""

    def function(k, d_model, base):
        out = np.zeros((d_model, d_model))
        for i in range(d_model // 2):
            rows = list(pairs(i, d_model))
            out[np.ix_(rows, rows)] = block(k / (power or base) ** exponent(i, d_model))
        return out

    return function


def _block(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


SHIFT = Exercise(
    task=_("shift(k, d_model, base): the (d_model, d_model) matrix M with PE[p + k] = M @ PE[p] for every p"),
    solution=positions.shift_matrix,
    inputs=lambda rng: (
        int(rng.integers(2, 9)) * int(rng.choice([-1, 1])),
        int(rng.choice([6, 8, 10])),
        float(rng.choice([20.0, 100.0, 1000.0])),
    ),
    mistakes=(
        Mistake(
            "moves back",
            _shift_with(lambda a: _block(-a)),
            _(
                "Your matrix moves back by k: the signs of the two sines are exchanged, or the matrix is transposed"
                " (right for rows, PE @ M; here it stands on the left)."
            ),
        ),
        Mistake("identity", lambda k, d, b: np.eye(d), _("Your matrix leaves every position where it is.")),
        Mistake(
            "halves paired",
            _shift_with(_block, pairs=lambda i, d: (i, i + d // 2)),
            _("You pair channel i with channel i + d/2. In this table a pair is two neighbours, 2i and 2i + 1."),
        ),
        Mistake(
            "exponent without the 2",
            _shift_with(_block, exponent=lambda i, d: i / d),
            _("Your frequencies are base^(−i/d); the table has base^(−2i/d)."),
        ),
        Mistake(
            "one angle for all",
            _shift_with(_block, exponent=lambda i, d: 0),
            _("All your blocks turn by k. Each pair turns by k times its own frequency."),
        ),
        Mistake(
            "both sines positive",
            _shift_with(lambda a: np.array([[np.cos(a), np.sin(a)], [np.sin(a), np.cos(a)]])),
            _("Your blocks are symmetric, so they are no rotations: one of the sines is negative."),
        ),
        Mistake(
            "cosines alone",
            _shift_with(lambda a: np.cos(a) * np.eye(2)),
            _("You have only the diagonal. sin(a + b) needs cos a as well: each channel of a pair takes from both."),
        ),
        Mistake(
            "order of cosine and sine",
            _shift_with(lambda a: np.array([[np.sin(a), np.cos(a)], [np.cos(a), -np.sin(a)]])),
            _("Sine and cosine have changed places in your blocks: for k = 0 the matrix must be the identity."),
        ),
        Mistake(
            "base ignored",
            _shift_with(_block, power=10000.0),
            _("Your frequencies have base 10000 whatever is passed."),
        ),
    ),
    hints=(
        _("sin(a + b) = sin a cos b + cos a sin b and cos(a + b) = cos a cos b − sin a sin b, with a = pθ and b = kθ."),
        _("So the block of a pair is [[cos kθ, sin kθ], [−sin kθ, cos kθ]], with θ = base^(−2i/d)."),
        _("Start from np.zeros((d_model, d_model)) and set M[2i, 2i], M[2i, 2i+1], M[2i+1, 2i] and M[2i+1, 2i+1]."),
    ),
)


def _add_inputs(rng):
    # More rows than tokens, more tokens than sequences, and no two sizes alike.
    batch, length = int(rng.integers(2, 4)), int(rng.integers(5, 8))
    width, rows = int(rng.choice([4, 9])), int(rng.integers(10, 14))
    return rng.standard_normal((batch, length, width)), rng.standard_normal((rows, width))


ADD = Exercise(
    task=_("add_positions(x, table): embeddings x of shape (B, L, D) with the table's positions 0 … L − 1 added"),
    solution=lambda x, table: x + table[: x.shape[1]],
    inputs=_add_inputs,
    mistakes=(
        Mistake(
            "batch axis",
            lambda x, table: x + table[: x.shape[0], None],
            _(
                "Your positions run along the batch: every token of a sequence gets the same vector, that of its"
                " sequence's number. The tokens are axis 1 of x."
            ),
        ),
        Mistake("nothing added", lambda x, table: x + 0, _("Your result is x: no position was added.")),
        Mistake(
            "multiplied",
            lambda x, table: x * table[: x.shape[1]],
            _("You multiply by the table. It is added; a factor of sin 0 = 0 would erase the channel."),
        ),
        Mistake(
            "position from 1",
            lambda x, table: x + table[1 : x.shape[1] + 1],
            _("Your first token has the vector of position 1; positions start at 0."),
        ),
        Mistake(
            "the last rows",
            lambda x, table: x + table[-x.shape[1] :],
            _("You take the last rows of the table. The first token stands at position 0."),
        ),
        Mistake(
            "one row for all",
            lambda x, table: x + table[0],
            _("Every token gets the vector of position 0, so nothing tells them apart."),
        ),
        Mistake(
            "backwards",
            lambda x, table: x + table[: x.shape[1]][::-1],
            _("Your positions run from the last token back."),
        ),
        Mistake(
            "embeddings scaled",
            lambda x, table: np.sqrt(x.shape[-1]) * x + table[: x.shape[1]],
            _("You multiply the embeddings by √D, as the paper does (§3.4). The task leaves x as it is."),
        ),
    ),
    hints=(
        _("Which axis of x counts the tokens? The table must meet that one."),
        _("table[:L] has the shape (L, D) and broadcasts over the batch by itself."),
        _("x + table[: x.shape[1]]"),
    ),
)
