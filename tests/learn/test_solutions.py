"""Every exercise solved as a reader would who has followed its hints: in plain NumPy, with nothing of the library.

So each exercise can be solved from what it says, and its checker is compared with an answer that is not its own.
"""

import numpy as np
import pytest
from exercises import EXERCISES

# ---------------------------------------------------------------- what several solutions share


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def rms(x, weight=1.0, eps=0.0):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def causal(scores):
    return np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)


def turn(x, angles):
    a, b, out = x[..., 0::2], x[..., 1::2], np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)
    return out


def turned_rows(x, inv_freq, start=0):
    return turn(x, np.outer(np.arange(start, start + len(x)), inv_freq))


# ---------------------------------------------------------------- 01 to 03


def why_position_gap(attend, x, order):
    return np.abs(attend(x[order]) - attend(x)[order]).max()


def why_position_attend(x, w_query, w_key, w_value):
    scores = (x @ w_query) @ (x @ w_key).T / np.sqrt(w_key.shape[1])
    return softmax(causal(scores)) @ (x @ w_value)


def why_position_stays(order):
    return [order[t] == t and set(order[: t + 1]) == set(range(t + 1)) for t in range(len(order))]


def positions_table(seq_len, d_model, base):
    angles = np.arange(seq_len)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
    out = np.empty((seq_len, d_model))
    out[:, 0::2], out[:, 1::2] = np.sin(angles), np.cos(angles)
    return out


def positions_shift(k, d_model, base):
    matrix = np.zeros((d_model, d_model))
    for i in range(0, d_model, 2):
        c, s = np.cos(k * base ** (-i / d_model)), np.sin(k * base ** (-i / d_model))
        matrix[i : i + 2, i : i + 2] = [[c, s], [-s, c]]
    return matrix


def positions_add(x, table):
    return x + table[: x.shape[1]]


def relative_bias_bucket(relative_position, num_buckets, max_distance):
    n = num_buckets // 2
    e, d = n // 2, np.abs(relative_position)
    far = e + np.floor(np.log(np.maximum(d, e) / e) / np.log(max_distance / e) * (n - e))
    return np.where(d < e, d, np.minimum(n - 1, far)) + n * (relative_position > 0)


def relative_bias_slopes(n_heads):
    p = 2 ** (n_heads.bit_length() - 1)

    def of(n):
        return 2.0 ** (-8 * np.arange(1, n + 1) / n)

    return np.concatenate([of(p), of(2 * p)[0::2][: n_heads - p]])


def relative_bias_attend(query, key, value, bias):
    return softmax(causal(query @ key.swapaxes(-1, -2) + bias)) @ value


# ---------------------------------------------------------------- 04 to 08


def rope_rotate(x, position, rope_base):
    return turn(x, position * rope_base ** (-np.arange(0, len(x), 2) / len(x)))


def rope_score(query, key, m, n, theta):
    return turn(query, m * theta) @ turn(key, n * theta) / np.sqrt(2)


def rope_attend(query, key, value, inv_freq):
    q, k = turned_rows(query, inv_freq), turned_rows(key, inv_freq)
    return softmax(causal(q @ k.T / np.sqrt(q.shape[1]))) @ value


def rope_scores_scores(query, key, offsets, inv_freq):
    q, k = query[0::2] + 1j * query[1::2], key[0::2] + 1j * key[1::2]
    return (np.conj(q) * k * np.exp(1j * np.outer(offsets, inv_freq))).sum(axis=1).real / np.sqrt(len(query))


def rope_scores_wavelength(pair, head_dim, rope_base):
    return 2 * np.pi * rope_base ** (2 * pair / head_dim)


def rope_scores_complete(head_dim, rope_base, length):
    return sum(rope_scores_wavelength(i, head_dim, rope_base) <= length for i in range(head_dim // 2))


def rope_layout_permute_head(w):
    return np.concatenate([w[0::2], w[1::2]])


def rope_layout_permute_heads(w, n_heads):
    return w.reshape(n_heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def rope_layout_convert_layer(w_q, w_k, w_v, head_dim, rotary_dim):
    moved = list(range(0, rotary_dim, 2)) + list(range(1, rotary_dim, 2)) + list(range(rotary_dim, head_dim))
    q, k = (w.reshape(-1, head_dim, w.shape[1])[:, moved].reshape(w.shape) for w in (w_q, w_k))
    return np.concatenate([q, k, w_v])


def cache_positions(valid, new):
    return valid.sum() + np.arange(new)


def cache_step(query, key, value, keys, values, inv_freq):
    angles = len(keys) * inv_freq
    keys, values = np.vstack([keys, turn(key, angles)]), np.vstack([values, value])
    return softmax(keys @ turn(query, angles) / np.sqrt(len(query))) @ values


def cache_bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bits):
    return 2 * n_layers * n_kv_heads * head_dim * tokens * bits / 8


def context_extension_ntk_base(base, factor, head_dim):
    return base * factor ** (head_dim / (head_dim - 2))


def context_extension_pi_angle(position, theta, trained_length, length):
    return position * trained_length / length * theta


def context_extension_yarn(theta, factor, trained_length):
    kept = np.clip((trained_length * theta / (2 * np.pi) - 1) / 31, 0, 1)
    return np.append(kept * theta + (1 - kept) * theta / factor, (0.1 * np.log(factor) + 1) ** 2)


# ---------------------------------------------------------------- 09 to 12


def norms_rms_norm(x, weight, eps):
    return rms(x, weight, eps)


def norms_layer_norm(x, weight, bias, eps):
    left = x - x.mean(axis=-1, keepdims=True)
    return left / np.sqrt((left**2).mean(axis=-1, keepdims=True) + eps) * weight + bias


def norms_center(w):
    return w - w.mean(axis=1, keepdims=True)


def norm_placement_layer(x, w_attn, w_ffn, alpha):
    def norm(v):
        return rms(v, eps=1e-6)

    ways = (
        lambda v, f: v + f(norm(v)),
        lambda v, f: norm(v + f(v)),
        lambda v, f: v + norm(f(norm(v))),
        lambda v, f: norm(alpha * v + f(v)),
    )
    return [way(way(x, lambda v: v @ w_attn), lambda v: v @ w_ffn) for way in ways]


def norm_placement_backward(grad, x, w):
    r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    n, g = r * x, grad @ w.T
    return grad + r * (g - n * (g * n).mean(axis=-1, keepdims=True))


def activations_gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def activations_silu_slope(x):
    s = sigmoid(x)
    return s + x * s * (1 - s)


def activations_dead(pre):
    return (pre <= 0).all(axis=0)


def swiglu_swiglu(x, w_gate, w_up, w_down):
    return (silu(x @ w_gate) * (x @ w_up)) @ w_down


def swiglu_fused(x, w_gate_up, w_down):
    gate, up = np.split(x @ w_gate_up, 2, axis=-1)
    return (silu(gate) * up) @ w_down


def swiglu_gate_gradient(g, u, dh):
    s = sigmoid(g)
    return dh * u * s * (1 + g * (1 - s))


# ---------------------------------------------------------------- 13 to 18


def budget_parameters(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size):
    layer = 2 * d * n_heads * head_dim + 2 * d * n_kv_heads * head_dim + 3 * d * d_ff + 2 * d
    tied = n_layers * layer + d + vocab_size * d
    return [layer, tied, tied + vocab_size * d]


def budget_width(d, multiple_of, multiplier):
    wide = np.floor(multiplier * (2 * (4 * d) // 3)).astype(int)
    return -(-wide // multiple_of) * multiple_of


def budget_cache(n_layers, n_heads, n_kv_heads, head_dim, tokens, bytes_per_value):
    return 2 * n_layers * n_kv_heads * head_dim * tokens * bytes_per_value


def decoder_layer_decoder_layer(x, w_q, w_k, w_v, w_o, w_gate, w_up, w_down):
    n = rms(x, eps=1e-6)
    scores = (n @ w_q) @ (n @ w_k).T / np.sqrt(w_q.shape[1])
    u = x + softmax(causal(scores)) @ (n @ w_v) @ w_o
    return u + swiglu_swiglu(rms(u, eps=1e-6), w_gate, w_up, w_down)


def stack_and_loss_next_token_loss(logits, tokens):
    z = logits[:-1] - logits[:-1].max(axis=-1, keepdims=True)
    z = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return -z[np.arange(len(z)), tokens[1:]].mean()


def stack_and_loss_causal_mask(n_queries, n_keys):
    return np.arange(n_keys) <= np.arange(n_queries)[:, None] + n_keys - n_queries


def stability_clip(gradients, max_norm):
    norm = np.sqrt((gradients**2).sum(axis=(1, 2), keepdims=True))
    return gradients * np.minimum(1, max_norm / norm)


def stability_narrow(w, n_layers):
    return w / np.sqrt(2 * n_layers)


def stability_qk_norm(q, k, gain):
    return rms(q, gain) @ rms(k, gain).T / np.sqrt(q.shape[1])


def long_context_pairs(length, window):
    return window * (window + 1) // 2 + (length - window) * window


def long_context_perplexity(losses, block):
    return np.exp(losses.reshape(-1, block).mean(axis=-1))


def real_model_next_loss(logits, tokens):
    return stack_and_loss_next_token_loss(logits, tokens)


def real_model_nucleus(probabilities, top_p):
    order = np.argsort(-probabilities)
    kept = order[: np.searchsorted(np.cumsum(probabilities[order]), top_p) + 1]
    out = np.zeros_like(probabilities)
    out[kept] = probabilities[kept] / probabilities[kept].sum()
    return out


def coding_round_rotate_half(x, cos, sin):
    a, b = np.split(x, 2, axis=-1)
    return x * cos + np.concatenate([-b, a], axis=-1) * sin


SOLUTIONS = {name: globals().get(name.replace(".", "_").lower()) for name in EXERCISES}


def test_every_exercise_has_a_solution_here():
    assert [name for name, solution in SOLUTIONS.items() if solution is None] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_a_solution_by_the_hints_passes(name):
    for seed in range(5):
        verdict = EXERCISES[name].check(SOLUTIONS[name], seed=seed)
        assert verdict.passed, verdict
