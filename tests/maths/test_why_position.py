"""Order: equivariance against permutation matrices and slow loops, and what each scheme and mask leaves of it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.maths import why_position as maths
from transformer_parts.maths.activations import gelu
from transformer_parts.maths.attention import attention
from transformer_parts.maths.norms import rms_norm
from transformer_parts.maths.relative_bias import alibi_slopes
from transformer_parts.maths.why_position import SCHEMES, SelfAttention

EXACT = 1e-12
L, D, H = 7, 12, 3
WORDS = ["dog", "bites", "man"]


@pytest.fixture
def x(rng):
    return rng.standard_normal((L, D))


def layers(scheme="none", **settings):
    return SelfAttention.random(D, H, scheme=scheme, **settings)


def slow(attend, x, start=0):
    """The layers by the formulas, entry by entry; the schemes written anew."""
    length, width = len(x), D // H
    place = np.arange(length) + start
    if attend.scheme == "sinusoidal":
        x = x.copy()
        for p, c in itertools.product(range(length), range(D)):
            angle = place[p] / 10000 ** (2 * (c // 2) / D)
            x[p, c] += np.cos(angle) if c % 2 else np.sin(angle)
    elif attend.scheme == "learned":
        x = x + [attend.table[p] for p in place]
    for layer in attend.layers:
        mixed = np.zeros((length, D))
        for h in range(H):
            part = slice(h * width, (h + 1) * width)
            query, key, value = ((x @ matrix)[:, part] for matrix in layer[:3])
            for i in range(length):
                seen = range(i + 1) if attend.causal else range(length)
                logits = [score(attend, query[i], key[j], place[i], place[j], h) for j in seen]
                powers = np.exp(logits - np.max(logits))
                mixed[i, part] = powers / powers.sum() @ value[list(seen)]
        x = mixed @ layer.output
    return x


def score(attend, query, key, m, n, h):
    if attend.scheme == "rope":
        turned = []
        for vector, place in ((query, m), (key, n)):
            pairs = vector[::2] + 1j * vector[1::2]
            turned.append(pairs * np.exp(1j * place * 10000.0 ** (-2 * np.arange(len(pairs)) / len(vector))))
        return (turned[0].conj() @ turned[1]).real / np.sqrt(len(query))
    out = query @ key / np.sqrt(len(query))
    if attend.scheme == "alibi":
        out -= alibi_slopes(H)[h] * abs(m - n)
    elif attend.scheme == "t5":
        # Below 8 (16 with a mask) every distance has a bucket of its own; keys after the query are 16 further.
        out += attend.table[abs(m - n) + (16 if n > m and not attend.causal else 0), h]
    return out


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_layers_are_their_formulas(x, scheme, causal, n_layers):
    attend = layers(scheme, causal=causal, n_layers=n_layers)
    for start in (0, 5):
        np.testing.assert_allclose(attend(x, start=start), slow(attend, x, start), atol=EXACT)


def test_torch_agrees_on_equivariance_and_on_the_mask(torch, x):
    """The same layer in PyTorch: equal outputs, and the same gap with and without a mask."""
    order = np.roll(np.arange(L), 1)
    layer = torch.nn.MultiheadAttention(D, H, bias=False, batch_first=True, dtype=torch.float64)
    attend = layers()
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.tensor(np.concatenate([m.T for m in attend.layers[0][:3]])))
        layer.out_proj.weight.copy_(torch.tensor(attend.layers[0].output.T))

    for causal in (False, True):
        hidden = torch.triu(torch.ones(L, L, dtype=torch.bool), 1) if causal else None

        def theirs(tokens, hidden=hidden):
            tokens = torch.tensor(tokens)[None]
            return layer(tokens, tokens, tokens, attn_mask=hidden, need_weights=False)[0][0].detach().numpy()

        ours = layers(causal=causal)
        np.testing.assert_allclose(ours(x), theirs(x), atol=EXACT)
        np.testing.assert_allclose(
            maths.equivariance_gap(ours, x, order), maths.equivariance_gap(theirs, x, order), atol=EXACT
        )


@given(st.permutations(range(L)), st.integers(0, 99), st.integers(1, 3))
def test_without_mask_and_positions_every_reordering_moves_the_outputs_along(order, seed, n_layers):
    tokens = np.random.default_rng(seed).standard_normal((L, D))
    attend = layers(n_layers=n_layers, seed=seed)
    assert np.abs(maths.equivariance_gap(attend, tokens, order)).max() < 1e-14
    matrix = maths.permutation_matrix(order)
    np.testing.assert_allclose(attend(matrix @ tokens), matrix @ attend(tokens), atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_and_the_mask_break_it(x, scheme, causal):
    gap = np.abs(maths.equivariance_gap(layers(scheme, causal=causal), x, np.roll(np.arange(L), 1))).max()
    assert (gap > 0.01) == (causal or scheme != "none")


def test_equivariant_is_not_invariant(x):
    order = maths.reorder("reverse", L)
    assert np.abs(maths.invariance_gap(layers(), x, order)).max() > 0.1
    mean = layers()(x).mean(axis=0)
    np.testing.assert_allclose(layers()(x[order]).mean(axis=0), mean, atol=1e-14)


@pytest.mark.parametrize(("scheme", "kept"), [("none", True), ("alibi", True), ("t5", False), ("rope", False)])
def test_distance_without_direction_does_not_see_a_reversal(x, scheme, kept):
    gap = np.abs(maths.equivariance_gap(layers(scheme), x, maths.reorder("reverse", L))).max()
    assert (gap < 1e-14) == kept
    assert np.abs(maths.equivariance_gap(layers(scheme, causal=True), x, maths.reorder("reverse", L))).max() > 0.1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_relative_schemes_do_not_see_a_shift(x, scheme, causal):
    attend = layers(scheme, causal=causal, n_layers=2)
    gap = np.abs(maths.shift_gap(attend, x, 100)).max()
    assert (gap < EXACT) == (scheme not in ("sinusoidal", "learned"))
    keys = np.abs(attend.keys(x, start=100) - attend.keys(x)).max()
    assert (keys == 0) == (scheme in ("none", "t5", "alibi"))


@given(st.permutations(range(L)), st.integers(1, 2))
def test_what_a_mask_lets_stay_is_foretold(order, n_layers):
    tokens = np.random.default_rng(3).standard_normal((L, D))
    gap = np.abs(maths.equivariance_gap(layers(causal=True, n_layers=n_layers), tokens, order)).max(axis=1)
    stays = maths.sees_the_same(order, n_layers)
    assert gap[stays].max(initial=0) < 1e-14
    # The output at a fixed place is moved along to that place, so that staying and moving along are the same there.
    assert gap[~stays].min(initial=1) > 1e-6
    sets = [order[t] == t and set(order[: t + 1]) == set(range(t + 1)) for t in range(L)]
    assert n_layers > 1 or stays.tolist() == sets


def test_a_causal_mask_counts():
    """Theorem 1 of arXiv 2305.19466 in one head: uniform attention over one marked token gives 1/(t + 1)."""
    value = np.zeros((1, 11, 1))
    value[0, 0] = 1
    mean = attention(np.zeros((1, 11, 2)), np.zeros((1, 11, 2)), value, causal=True)[0, :, 0]
    np.testing.assert_allclose(1 / mean - 1, np.arange(11), atol=EXACT)


@pytest.mark.parametrize("function", [rms_norm, gelu, lambda x: gelu(x @ np.ones((D, 5)))])
def test_norms_and_feed_forward_move_along_to_the_last_bit(x, function):
    assert not maths.equivariance_gap(function, x, np.roll(np.arange(L), 2)).any()


def test_gaps_by_hand():
    def running(x):
        return np.cumsum(x, axis=-2)

    tokens, order = np.array([[1.0], [10.0], [100.0]]), [1, 2, 0]
    # P f(X) = (11, 111, 1), f(PX) = (10, 110, 111)
    np.testing.assert_array_equal(maths.equivariance_gap(running, tokens, order), [[-1], [-1], [110]])
    np.testing.assert_array_equal(maths.invariance_gap(running, tokens, order), [[9], [99], [0]])
    batch = np.stack([tokens, 2 * tokens])
    np.testing.assert_array_equal(maths.equivariance_gap(running, batch, order)[1], [[-2], [-2], [220]])


def test_reorderings():
    kinds = {kind: maths.reorder(kind, 5, i=1, j=3, seed=4).tolist() for kind in maths.REORDERINGS}
    assert sorted(kinds.pop("shuffle")) == [0, 1, 2, 3, 4]
    assert kinds == {
        "none": [0, 1, 2, 3, 4],
        "swap": [0, 3, 2, 1, 4],
        "reverse": [4, 3, 2, 1, 0],
        "rotate": [4, 0, 1, 2, 3],
    }
    assert maths.reorder("swap", 3, i=2, j=2).tolist() == [0, 1, 2]


def test_words_have_their_vector_wherever_they_stand():
    the_dog_the = maths.embed(["the", "dog", "the"], 5, seed=2)
    np.testing.assert_array_equal(the_dog_the[0], the_dog_the[2])
    assert np.abs(the_dog_the[0] - the_dog_the[1]).max() > 0.1
    np.testing.assert_array_equal(maths.embed(WORDS[::-1], 5), maths.embed(WORDS, 5)[::-1])
    assert np.abs(maths.embed(WORDS, 5, seed=1) - maths.embed(WORDS, 5)).max() > 0.1


def test_same_word_same_output_without_positions():
    x = maths.embed(["the", "cat", "saw", "the", "dog"], D)
    np.testing.assert_allclose(layers()(x)[0], layers()(x)[3], atol=1e-15)
    assert np.abs(np.subtract(*layers("rope", seed=3)(x)[[0, 3]])).max() > 0.01


def test_weights_are_those_that_mixed(x):
    attend = layers("alibi", causal=True, n_layers=2)
    weights = attend.weights(x)
    assert weights.shape == (2, H, L, L)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=EXACT)
    assert not np.triu(weights, 1).any()
    projections = attend.layers[0]
    value = (x @ projections.value).reshape(L, H, -1).swapaxes(0, 1)
    first = (weights[0] @ value).swapaxes(0, 1).reshape(L, D) @ projections.output
    np.testing.assert_allclose(SelfAttention((projections,), H, "alibi", True)(x), first, atol=EXACT)


def test_leading_axes(x):
    attend = layers("rope", causal=True)
    np.testing.assert_allclose(attend(np.stack([[x, 2 * x]]))[0, 1], attend(2 * x), atol=EXACT)
    assert attend.weights(np.stack([x, x, x])).shape == (1, 3, H, L, L)


def test_parameters_are_those_that_are_learned():
    numbers = {scheme: layers(scheme, max_positions=17).position_parameters for scheme in SCHEMES}
    assert numbers == {"none": 0, "sinusoidal": 0, "learned": 17 * D, "t5": 32 * H, "alibi": 0, "rope": 0}
    gpt2 = SelfAttention.random(768, 12, scheme="learned", max_positions=1024)
    assert gpt2.position_parameters == 786_432


def test_one_seed_gives_the_same_projections_to_every_scheme():
    for scheme in SCHEMES:
        np.testing.assert_array_equal(layers(scheme).layers, layers().layers)
    assert np.abs(np.array(layers(seed=1).layers) - layers().layers).max() > 0.1


def test_a_learned_table_ends(x):
    attend = layers("learned", max_positions=L + 3)
    attend(x, start=3)
    with pytest.raises(ValueError, match=r"^x, start: got .* positions: got 10, want 0 to 9"):
        attend(x, start=4)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: layers("rotary"), "scheme"),
        (lambda x: layers(causal=1), "causal"),
        (lambda x: layers(n_layers=0), "n_layers"),
        (lambda x: layers(seed=-1), "seed"),
        (lambda x: SelfAttention.random(D, 5), "n_heads"),
        (lambda x: SelfAttention.random(D, 4, scheme="rope"), "head_dim"),
        (lambda x: SelfAttention(layers().layers, H, "t5"), "table"),
        (lambda x: SelfAttention(layers().layers, H, "none", table=x), "table"),
        (lambda x: SelfAttention(layers().layers, H, "learned", table=x[:, :3]), "table"),
        (lambda x: SelfAttention((), H), "layers"),
        (lambda x: SelfAttention((maths.Projections(*4 * [x]),), H), "query"),
        (lambda x: layers()(x[:, :5]), "x"),
        (lambda x: layers()(x, start=-1), "start"),
        (lambda x: maths.equivariance_gap(layers(), x, [0, 1]), "order"),
        (lambda x: maths.equivariance_gap(layers(), x, [0, 0, 1, 2, 3, 4, 5]), "order"),
        (lambda x: maths.invariance_gap(np.sum, x, np.arange(L)), "function"),
        (lambda x: maths.permutation_matrix([0.0, 1.0]), "order"),
        (lambda x: maths.sees_the_same([0, 1], 0), "n_layers"),
        (lambda x: maths.reorder("mirror", 3), "kind"),
        (lambda x: maths.reorder("swap", 3, i=3), "i"),
        (lambda x: maths.reorder("swap", 3, j=-1), "j"),
        (lambda x: maths.reorder("none", 0), "length"),
        (lambda x: maths.embed("dog", 3), "words"),
        (lambda x: maths.embed([1, 2], 3), "words"),
        (lambda x: maths.embed(["dog"], 0), "d_model"),
    ],
)
def test_bad_input_is_named(x, call, name):
    with pytest.raises(ValueError, match=rf"^{name}: got "):
        call(x)
