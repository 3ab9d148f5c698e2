"""Fixtures shared by all tests."""

import importlib
import os

import numpy as np
import pytest


def _oracle(name: str):
    """Import an optional independent implementation: absent, the test is skipped; in CI it must be there."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{name} is not installed (pip install -r requirements-oracles.txt)")


@pytest.fixture(scope="session")
def torch():
    return _oracle("torch")


@pytest.fixture(scope="session")
def transformers():
    return _oracle("transformers")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
