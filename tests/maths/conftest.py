"""Oracles shared by the tests of the maths room."""

import importlib
from typing import NamedTuple

import numpy as np
import onnx
import pytest


class OnnxCase(NamedTuple):
    """One node test of the ONNX standard: what goes in and what must come out."""

    name: str
    attributes: dict[str, object]
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


@pytest.fixture
def onnx_cases(monkeypatch):
    """Return a function that lists the node tests in one of onnx's case modules, by the module's name."""

    def collect(module_name: str) -> list[OnnxCase]:
        module = importlib.import_module(f"onnx.backend.test.case.node.{module_name}")
        found = []

        def expect(node, inputs, outputs, name, **_):
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            found.append(OnnxCase(name, attributes, list(inputs), list(outputs)))

        monkeypatch.setattr(module, "expect", expect)
        np.random.seed(20261130)  # noqa: NPY002 - the cases draw from the global generator
        for case in vars(module).values():
            if isinstance(case, type) and case.__module__ == module.__name__:
                for export in (f for n, f in vars(case).items() if n.startswith("export")):
                    export.__func__()
        assert found, f"{module_name} holds no test"
        return found

    return collect


def by_central_differences(f, x: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Return the gradient of a scalar function of one float64 array, entry by entry.

    Fourth order: the error is of the order of step⁴ times a fifth derivative, about 1e-12.
    """
    out = np.empty(x.shape)
    for at in np.ndindex(x.shape):

        def moved(by, at=at):
            y = x.copy()
            y[at] += by * step
            return float(f(y))

        out[at] = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step)
    return out


@pytest.fixture(scope="session")
def differences():
    """Gradients by central differences: (function of one array, array) → gradient."""
    return by_central_differences
