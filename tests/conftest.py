"""Fixtures shared by all tests."""

import functools
import importlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sampling import Sample, commit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A failing assert in what test files share says its values, as those in test files do.
pytest.register_assert_rewrite("panel_table")

# Written by hand, once, with packages that not every machine has; no tests are in them.
collect_ignore_glob = ["*/make_golden_*.py"]


# ---------------------------------------------------------------- what is alike is sampled


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sample", "what is alike is sampled, and the sample changes from commit to commit")
    group.addoption("--everything", action="store_true", help="leave nothing out")
    group.addoption("--sample-seed", help="choose the sample by this word in place of the commit")


def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist are given the controller's options.
    config.option.sample_seed = config.option.sample_seed or commit()


def pytest_report_header(config: pytest.Config) -> str:
    if config.option.everything:
        return f"sample: none, everything is tried; random states by --sample-seed={config.option.sample_seed}"
    return f"sample: chosen by --sample-seed={config.option.sample_seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of each test marked `sampled` keep so many cases, and let the longest tests begin first."""
    sample, cases = Sample(config.option.sample_seed, config.option.everything), {}
    for item in items:
        if (mark := item.get_closest_marker("sampled")) is not None:
            cases.setdefault((item.parent.nodeid, item.originalname, mark.args[0]), []).append(item)
    kept = {item for (*_, count), alike in cases.items() for item in sample.of(alike, count, lambda i: i.callspec.id)}
    dropped = [item for alike in cases.values() for item in alike if item not in kept]
    config.hook.pytest_deselected(items=dropped)
    dropped = set(dropped)
    items[:] = [item for item in items if item not in dropped]
    items.sort(key=lambda item: item.get_closest_marker("sweep") is None)


@pytest.fixture(scope="session")
def sample(pytestconfig) -> Sample:
    return Sample(pytestconfig.option.sample_seed, pytestconfig.option.everything)


@pytest.fixture(scope="session")
def begun() -> Callable[[type], object]:
    """Return a panel of a class as it begins, one for all tests that only read it."""
    return functools.cache(lambda kind: kind())


# ---------------------------------------------------------------- what not every machine has


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
