"""The exercise on the decoder layer (notebook 14); those on its loss and mask are in `stack_and_loss`."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.activations import gelu, relu, sigmoid, silu
from transformer_parts.maths.attention import attention, softmax
from transformer_parts.maths.norms import layer_norm, rms_norm


def _layer_case(rng):
    # Every size differs, and the weights are large enough for every mistake to change the result.
    length, width, hidden = rng.choice(np.arange(3, 9), 3, replace=False)
    square = [rng.standard_normal((width, width)) for _matrix in range(4)]
    gate, up = (rng.standard_normal((width, hidden)) for _matrix in range(2))
    down = rng.standard_normal((hidden, width))
    x = rng.uniform(0.5, 2) * rng.standard_normal((length, width)) + rng.uniform(-1, 1, (length, 1))
    return x, *square, gate, up, down


def _no_norm(x):
    return x


def _mix(q, k, v, *, scale=None, mask=None):
    mask = np.tri(len(q), dtype=bool) if mask is None else mask
    return attention(q[None], k[None], v[None], mask=mask, scale=scale)[0]


def _masked_late(q, k, v):
    weights = softmax(q @ k.T / np.sqrt(q.shape[-1])) * np.tri(len(q))
    return weights @ v


def _zeros_for_minus_infinity(q, k, v):
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) * np.tri(len(q))) @ v


def _softmax_over_queries(q, k, v):
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
    return softmax(scores, axis=0) @ v


def _layer(
    *, mix=_mix, norm=rms_norm, act=silu, swap=False, residual1=True, residual2="u", stream=_no_norm, after=_no_norm,
    second="u", inner=None,
):  # fmt: skip
    """Build a decoder layer with one step replaced."""

    def function(x, w_q, w_k, w_v, w_o, w_gate, w_up, w_down):
        before = norm if inner is None else inner
        normed = before(x)
        u = after(stream(x) * residual1 + mix(normed @ w_q, normed @ w_k, normed @ w_v) @ w_o)
        normed = before({"u": u, "x": x}[second])
        gate, up = (w_up, w_gate) if swap else (w_gate, w_up)
        added = (act(normed @ gate) * (normed @ up)) @ w_down
        return after(added + {"u": stream(u), "x": x, "none": 0}[residual2])

    return function


DECODER_LAYER = Exercise(
    task=_(
        "my_layer(x, w_q, w_k, w_v, w_o, w_gate, w_up, w_down): one pre-norm layer of one head, x of shape (L, D), with"
        " RMSNorm without gains (rms_norm(x)), a causal mask, SwiGLU, no RoPE, no biases"
    ),
    solution=_layer(),
    inputs=_layer_case,
    mistakes=(
        Mistake("identity", lambda x, *weights: x, _("Your function returns x as it was.")),
        Mistake(
            "norm after the sum",
            _layer(inner=_no_norm, after=rms_norm),
            _(
                "You normalise the sums, as Post-LN does. Pre-norm normalises what enters each branch and leaves the"
                " stream itself alone."
            ),
        ),
        Mistake(
            "stream normalised too",
            _layer(stream=rms_norm),
            _("You add the branch to the normalised stream. The norm belongs to the branch: U = X + Attn(Norm(X))."),
        ),
        Mistake(
            "norm at the end",
            lambda *given: rms_norm(_layer()(*given)),
            _("You normalise the layer's output. The one norm that follows the stream comes after the last layer."),
        ),
        Mistake(
            "no norms",
            _layer(norm=_no_norm),
            _("Your branches read the stream as it is; each reads its norm."),
        ),
        Mistake(
            "second norm missing",
            lambda x, *w: (lambda u: u + (silu(u @ w[4]) * (u @ w[5])) @ w[6])(
                x + _mix(*(rms_norm(x) @ w[i] for i in range(3))) @ w[3]
            ),
            _("Attention reads a norm, the feed-forward layer does not: U has to be normalised for it as well."),
        ),
        Mistake(
            "LayerNorm",
            _layer(norm=layer_norm),
            _("Your norm subtracts the mean: that is LayerNorm; here RMSNorm is wanted."),
        ),
        Mistake(
            "first residual forgotten",
            _layer(residual1=False),
            _("U is attention's output alone; add X to it."),
        ),
        Mistake(
            "second residual forgotten",
            _layer(residual2="none"),
            _("Y is the feed-forward output alone; add U to it."),
        ),
        Mistake(
            "second residual from x",
            _layer(residual2="x"),
            _("You add X at the end. What attention wrote is in U: Y = U + FFN(Norm(U))."),
        ),
        Mistake(
            "branches side by side",
            _layer(second="x"),
            _(
                "Your feed-forward layer reads Norm(X), as in the parallel blocks of GPT-J. Here it reads Norm(U),"
                " after attention."
            ),
        ),
        Mistake(
            "no mask",
            _layer(mix=lambda q, k, v: _mix(q, k, v, mask=np.ones((len(q), len(q)), bool))),
            _("Your tokens see those after them: the mask is missing."),
        ),
        Mistake(
            "mask the wrong way",
            _layer(mix=lambda q, k, v: _mix(q, k, v, mask=np.tri(len(q), dtype=bool).T)),
            _(
                "Your mask is transposed: tokens see themselves and those after them. Rows are queries, columns are"
                " keys, and the lower triangle stays."
            ),
        ),
        Mistake(
            "mask one too far",
            _layer(mix=lambda q, k, v: _mix(q, k, v, mask=np.tri(len(q), k=1, dtype=bool))),
            _("Each token sees one token ahead: the diagonal of your mask is off by one."),
        ),
        Mistake(
            "mask after the softmax",
            _layer(mix=_masked_late),
            _(
                "You set weights to zero after the softmax, so that the rows no longer sum to 1, and what was hidden"
                " still counts in the denominator. Mask the scores, with −∞."
            ),
        ),
        Mistake(
            "zeros for −∞",
            _layer(mix=_zeros_for_minus_infinity),
            _("You set the hidden scores to 0. The softmax makes e⁰ = 1 of it, not 0: they have to be −∞."),
        ),
        Mistake(
            "softmax over the queries",
            _layer(mix=_softmax_over_queries),
            _("Your softmax runs down the columns. Each query's weights sum to 1: the last axis."),
        ),
        Mistake(
            "query and key exchanged",
            lambda x, w_q, w_k, *w: _layer()(x, w_k, w_q, *w),
            _("You exchange w_q and w_k: rows of the scores are queries, x @ w_q, and columns keys, x @ w_k."),
        ),
        Mistake(
            "w_o forgotten",
            lambda x, w_q, w_k, w_v, w_o, *w: _layer()(x, w_q, w_k, w_v, np.eye(len(w_o)), *w),
            _("The mixed values go back to the stream through w_o, which is missing."),
        ),
        Mistake("no scale", _layer(mix=lambda q, k, v: _mix(q, k, v, scale=1.0)), _("Divide the scores by √D.")),
        Mistake(
            "divided by D",
            _layer(mix=lambda q, k, v: _mix(q, k, v, scale=1 / q.shape[-1])),
            _("You divide the scores by D; it is the root of it."),
        ),
        Mistake(
            "gate and content exchanged",
            _layer(swap=True),
            _("You put SiLU on the content. It acts on x @ w_gate; x @ w_up passes as it is."),
        ),
        Mistake("GELU on the gate", _layer(act=gelu), _("The gate of SwiGLU is SiLU, z·σ(z); GELU makes it GEGLU.")),
        Mistake("ReLU on the gate", _layer(act=relu), _("The gate of SwiGLU is SiLU, z·σ(z); you have a ReLU there.")),
        Mistake(
            "sigmoid on the gate", _layer(act=sigmoid), _("SiLU is z·σ(z); you have the sigmoid alone: that is GLU.")
        ),
    ),
    hints=(
        _(
            "Two branches, each of the form stream + branch(norm(stream)); the second begins with what the first"
            " returns."
        ),
        _("scores = q @ k.T / np.sqrt(D), -np.inf where ~np.tri(L, dtype=bool); softmax(…, axis=-1) @ v @ w_o"),
        _("u = x + attention(rms_norm(x)); n = rms_norm(u); return u + (silu(n @ w_gate) * (n @ w_up)) @ w_down"),
    ),
)
