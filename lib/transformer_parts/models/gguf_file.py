"""A GGUF file: its fields by name, its tensors as float32 arrays."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray


class GGUFFile:
    """A GGUF file opened for reading (memory-mapped; a tensor is read when it is asked for).

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is not a whole GGUF file.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"path: got {self.path}, want a GGUF file: there is none")
        try:
            reader = gguf.GGUFReader(self.path)
        except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError) as error:
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

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor, by name, in the file's order; matrices are (out, in)."""
        return {name: tuple(int(n) for n in t.shape[::-1]) for name, t in self._tensors.items()}

    def tensor(self, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        """Return a tensor as float32, dequantised if need be; a matrix is (out, in).

        Raises
        ------
        ValueError
            There is no such tensor, or it has not the `shape` asked for.
        """
        if name not in self._tensors:
            raise ValueError(f"{self.path.name}: got no tensor {name!r}, want a file that has it")
        stored = self._tensors[name]
        values = gguf.quants.dequantize(stored.data, stored.tensor_type)
        if shape is not None and values.shape != shape:
            raise ValueError(f"{name}: got shape {values.shape}, want {shape}")
        if np.may_share_memory(values, stored.data):
            values = values.copy()  # so that nothing keeps the mapped file open
        return values.astype(np.float32, copy=False)
