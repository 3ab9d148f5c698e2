"""The forward pass: by loops straight from the papers, by transformers on the same file, and its laws."""

import cmath
import math
from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.maths.activations import silu
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile

IDS = [1, 71, 262, 5, 71, 0, 131, 89, 12, 200, 71]
PASSAGE = (
    "Before the bridge was built, the ferryman knew everyone in both villages. He carried the doctor to the births "
    "and the priest to the burials, and once, in a storm, he carried a piano. After the bridge was built he sat on "
    "the bank and counted the carts, and nobody knew him any more."
)


@pytest.fixture(scope="module")
def file(tiny):
    return GGUFFile(tiny.path)


@pytest.fixture(scope="module")
def model(file):
    return load_model(file)


def slow_logits(file: GGUFFile, tiny, ids: list[int]) -> np.ndarray:
    """The model token by token, head by head and pair by pair, in float64."""

    def tensor(name):
        return file.tensor(name).astype(np.float64)

    def norm(x, name):
        return x / math.sqrt(sum(v * v for v in x) / len(x) + tiny.eps) * tensor(name)

    def turn(x, position):
        out = np.empty_like(x)
        for i in range(tiny.head_dim // 2):
            angle = position * tiny.rope_base ** (-2 * i / tiny.head_dim)
            pair = complex(x[2 * i], x[2 * i + 1]) * cmath.exp(1j * angle)
            out[2 * i], out[2 * i + 1] = pair.real, pair.imag
        return out

    width, group = tiny.head_dim, tiny.n_heads // tiny.n_kv_heads
    stream = [tensor("token_embd.weight")[i] for i in ids]
    for layer in range(tiny.n_layers):
        w = {name: tensor(f"blk.{layer}.{name}.weight") for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        w |= {name: tensor(f"blk.{layer}.{name}.weight") for name in ("ffn_gate", "ffn_up", "ffn_down")}
        normed = [norm(x, f"blk.{layer}.attn_norm.weight") for x in stream]
        after = []
        for m, x in enumerate(stream):
            mixed = []
            for head in range(tiny.n_heads):
                own, shared = slice(head * width, (head + 1) * width), head // group
                read = slice(shared * width, (shared + 1) * width)
                q = turn((w["attn_q"] @ normed[m])[own], m)
                score = [q @ turn((w["attn_k"] @ normed[n])[read], n) / math.sqrt(width) for n in range(m + 1)]
                weight = [math.exp(s - max(score)) for s in score]
                total = sum(weight)
                mixed.append(sum(a / total * (w["attn_v"] @ normed[n])[read] for n, a in enumerate(weight)))
            after.append(x + w["attn_output"] @ np.concatenate(mixed))
        stream = []
        for u in after:
            normed_u = norm(u, f"blk.{layer}.ffn_norm.weight")
            gate = np.array([g / (1 + math.exp(-g)) for g in w["ffn_gate"] @ normed_u])
            stream.append(u + w["ffn_down"] @ (gate * (w["ffn_up"] @ normed_u)))
    head = "output.weight" if "output.weight" in file.shapes() else "token_embd.weight"
    return np.array([tensor(head) @ norm(x, "output_norm.weight") for x in stream])


def test_logits_by_loops(model, file, tiny):
    logits = model.forward(IDS)
    assert logits.shape == (len(IDS), 263)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, slow_logits(file, tiny, IDS), rtol=0, atol=2e-5)


def test_a_head_of_its_own_is_used(rewrite, tiny):
    tensors = dict(tiny.tensors)
    tensors["output.weight"] = np.random.default_rng(3).normal(0, 1, (263, 42)).astype(np.float32)
    other = GGUFFile(rewrite(tensors))
    np.testing.assert_allclose(load_model(other).forward(IDS), slow_logits(other, tiny, IDS), rtol=0, atol=1e-4)


def test_a_tied_head_is_the_embedding_itself(model):
    assert np.shares_memory(model.head, model.embedding)


@pytest.mark.oracle
def test_logits_of_transformers_on_the_small_file(model, tiny, their_logits):
    theirs = their_logits(tiny.path, IDS, "float64")
    np.testing.assert_allclose(model.forward(IDS), theirs, rtol=0, atol=2e-5)


def test_the_rows_halves_apart_need_the_split_layout(rewrite, tiny, model):
    """Un-interleave each head's rows of w_q and w_k: the split layout then gives the same logits, not before."""
    tensors = dict(tiny.tensors)
    order = [*range(0, tiny.head_dim, 2), *range(1, tiny.head_dim, 2)]
    for layer in range(tiny.n_layers):
        for part in ("attn_q", "attn_k"):
            name = f"blk.{layer}.{part}.weight"
            rows = tensors[name].reshape(-1, tiny.head_dim, tiny.d_model)
            tensors[name] = rows[:, order].reshape(tensors[name].shape)
    apart = load_model(GGUFFile(rewrite(tensors, quantised=tiny.quantised)), layout="split")
    np.testing.assert_allclose(apart.forward(IDS), model.forward(IDS), rtol=0, atol=2e-5)
    wrong = load_model(GGUFFile(tiny.path), layout="split")
    np.testing.assert_allclose(wrong.forward(IDS)[0], model.forward(IDS)[0], rtol=0, atol=2e-5)  # offset 0 alone
    assert np.abs(wrong.forward(IDS) - model.forward(IDS)).max() > 0.1


def test_a_later_token_changes_nothing_before_it(model):
    changed = [*IDS[:7], 7, *IDS[8:]]
    before, after = model.forward(IDS), model.forward(changed)
    np.testing.assert_allclose(after[:7], before[:7], rtol=0, atol=1e-6)
    assert np.abs(after[7:] - before[7:]).max(axis=-1).min() > 1e-3


def test_offsets_alone_matter(model):
    shifted = model.forward(IDS, np.arange(len(IDS)) + 31)
    np.testing.assert_allclose(shifted, model.forward(IDS), rtol=0, atol=5e-5)
    stretched = model.forward(IDS, 2 * np.arange(len(IDS)))
    assert np.abs(stretched - model.forward(IDS)).max() > 0.1


def test_leading_axes_are_separate_passages(model):
    both = model.forward([IDS, IDS[::-1]])
    np.testing.assert_allclose(both[0], model.forward(IDS), rtol=0, atol=1e-5)
    np.testing.assert_allclose(both[1], model.forward(IDS[::-1]), rtol=0, atol=1e-5)


def test_logits_of_one_position(model):
    np.testing.assert_allclose(model.logits(model.hidden(IDS)[-1]), model.forward(IDS)[-1], rtol=0, atol=1e-5)


def test_trace_keeps_what_is_named_in_that_order(model, tiny):
    names = ["logits", "blk.1.x", "blk.0.Y", "blk.1.q", "blk.0.gate_input", "blk.0.gate", "output_norm.input"]
    seen = model.trace(IDS, names)
    assert list(seen) == names
    np.testing.assert_allclose(seen["logits"], model.forward(IDS), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(seen["blk.1.x"], seen["blk.0.Y"])
    np.testing.assert_allclose(silu(seen["blk.0.gate_input"]), seen["blk.0.gate"], rtol=1e-6)
    np.testing.assert_allclose(seen["output_norm.input"], model.hidden(IDS), rtol=0, atol=1e-5)
    assert seen["blk.1.q"].shape == (tiny.n_heads, len(IDS), tiny.head_dim)


def test_trace_stops_after_the_last_named_layer(model):
    seen = model.trace(IDS, ["blk.0.x"])
    np.testing.assert_array_equal(seen["blk.0.x"], model.embedding[IDS])
    assert model.trace(IDS, []) == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("blk.2.q", r"names: got 'blk\.2\.q', want one of 'blk\.N\.STEP' with N below 2"),
        ("q", r"names: got 'q'"),
        ("blk.-1.q", r"names: got 'blk\.-1\.q'"),
        ("blk.1.nothing", r"names: got 'blk\.1\.nothing', want a step that is one of x, norm1, q"),
    ],
)
def test_trace_refuses_unknown_names(model, name, message):
    with pytest.raises(ValueError, match=message):
        model.trace(IDS, [name])


@pytest.mark.parametrize("ids", [[], [0.5], 3, [263], [-1], [True], [[1, 999]], ["a"]])
def test_other_token_ids_are_refused(model, ids):
    with pytest.raises(ValueError, match="token_ids: got"):
        model.forward(ids)


def test_positions_of_another_length_are_refused(model):
    with pytest.raises(ValueError, match="positions"):
        model.forward(IDS, np.arange(3))


@pytest.mark.oracle
def test_real_logits_are_those_of_transformers(real_path, their_logits):
    file = GGUFFile(real_path)
    ids = load_tokenizer(file).encode(PASSAGE).ids
    theirs = their_logits(real_path, ids, "float32")
    model = load_model(file)
    ours = model.forward(ids)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=5e-4)
    assert (ours.argmax(-1) == theirs.argmax(-1)).all()
    # the file's rows are interleaved: the other reading is worse by more than half a nat for each token
    layers = tuple(replace(layer, layout="split") for layer in model.layers)
    wrong = replace(model, layers=layers).forward(ids)
    assert loss(wrong, ids) - loss(ours, ids) > 0.5
    assert (wrong.argmax(-1) == theirs.argmax(-1)).mean() < 0.7


def loss(logits: np.ndarray, ids: list[int]) -> float:
    """Mean negative log-likelihood of each next token, in nats."""
    z = logits[:-1].astype(np.float64)
    log_sum = np.log(np.exp(z - z.max(-1, keepdims=True)).sum(-1)) + z.max(-1)
    return float(np.mean(log_sum - z[np.arange(len(z)), ids[1:]]))
