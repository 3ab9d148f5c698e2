"""A panel that logs an error, or a callback that swallows one, fails its test."""

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_logged(logged):
    return
