"""Fixtures shared by all tests."""

import importlib
import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A failing assert in what test files share says its values, as those in test files do.
pytest.register_assert_rewrite("panel_table")


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


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    """One browser for all tests."""
    import lab  # here, because most tests need neither it nor Playwright

    if lab.chromium_path() is None:
        reason = "no Chromium here (apt-get install chromium, or set CHROMIUM to its path)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with lab.browser() as browser:
        yield browser


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)


class Logged(logging.Handler):
    """Keeps the warnings and errors that were logged; a test that expects one looks at it and clears the list."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def messages(self) -> list[str]:
        return [f"{record.name}: {record.getMessage()}" for record in self.records]

    def clear(self) -> None:
        self.records.clear()


@pytest.fixture
def logged() -> Iterator[Logged]:
    """Fail the test if it leaves a logged warning of the library, of matplotlib or of a widget's callback."""
    handler = Logged()
    loggers = [logging.getLogger(name) for name in ("transformer_parts", "matplotlib", "traitlets")]
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)
    assert not handler.messages
