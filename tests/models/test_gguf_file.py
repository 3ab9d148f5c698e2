"""Reading fields and tensors; dequantised values by a slow loop over the bytes of the format."""

import struct

import gguf
import numpy as np
import pytest

from transformer_parts.models.gguf_file import GGUFFile


@pytest.fixture(scope="module")
def file(tiny):
    return GGUFFile(tiny.path)


def test_fields_have_their_values_and_kinds(file, tiny):
    assert file.field("general.architecture") == "llama"
    assert file.field("llama.block_count") == 2
    assert file.field("llama.rope.freq_base") == tiny.rope_base
    assert file.field("tokenizer.ggml.tokens") == tiny.words
    assert file.field("llama.attention.key_length", 13) == 13


def test_shapes_are_out_in_and_in_the_files_order(file, tiny):
    assert file.shapes() == {name: values.shape for name, values in tiny.tensors.items()}
    assert list(file.shapes()) == list(tiny.tensors)


def test_plain_tensors_come_back_bit_for_bit_and_are_copies(file, tiny):
    for name in tiny.tensors.keys() - tiny.quantised.keys():
        values = file.tensor(name)
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, tiny.tensors[name])
        values[:] = 0  # the file is not touched
        np.testing.assert_array_equal(file.tensor(name), tiny.tensors[name])


def slow_q8_0(block: bytes) -> list[float]:
    """ggml's block_q8_0: a float16 scale d, then 32 signed bytes; value = d·q."""
    (d,) = struct.unpack("<e", block[:2])
    return [d * q for q in struct.unpack("<32b", block[2:])]


def slow_q4_1(block: bytes) -> list[float]:
    """ggml's block_q4_1: float16 d and m, then 16 bytes; low halves first, then high ones; value = d·q + m."""
    d, m = struct.unpack("<ee", block[:4])
    return [d * (b & 15) + m for b in block[4:]] + [d * (b >> 4) + m for b in block[4:]]


@pytest.mark.parametrize(
    ("name", "slow", "size"), [("blk.1.ffn_down.weight", slow_q8_0, 34), ("blk.0.ffn_down.weight", slow_q4_1, 20)]
)
def test_quantised_tensors_by_a_loop_over_the_bytes(file, tiny, name, slow, size):
    stored = next(t for t in gguf.GGUFReader(tiny.path).tensors if t.name == name)
    data = stored.data.tobytes()
    expected = [value for i in range(0, len(data), size) for value in slow(data[i : i + size])]
    values = file.tensor(name, (42, 64))
    np.testing.assert_allclose(values.ravel(), expected, rtol=1e-6, atol=1e-7)
    # and they are what was quantised, to within half a step of 4 bits over a block's range
    assert np.abs(values - tiny.tensors[name]).max() < 0.1


def test_unknown_names_and_wrong_shapes_are_named(file):
    with pytest.raises(ValueError, match=r"got no field 'llama\.nothing'"):
        file.field("llama.nothing")
    with pytest.raises(ValueError, match=r"got no tensor 'blk\.9\.attn_q\.weight'"):
        file.tensor("blk.9.attn_q.weight")
    with pytest.raises(ValueError, match=r"blk\.0\.attn_k\.weight: got shape \(20, 42\), want \(20, 41\)"):
        file.tensor("blk.0.attn_k.weight", (20, 41))


@pytest.mark.parametrize("keep", [0, 3, 24, 300, 5000, -99])
def test_a_damaged_file_is_refused_by_name(tiny, tmp_path, keep):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(tiny.path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"path: got .*damaged\.gguf, want a whole GGUF file"):
        GGUFFile(damaged)


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"PK\x03\x04" * 100)
    with pytest.raises(ValueError, match=r"want a whole GGUF file .*magic"):
        GGUFFile(tmp_path / "x.gguf")
    with pytest.raises(FileNotFoundError, match="want a GGUF file: there is none"):
        GGUFFile(tmp_path / "y.gguf")
