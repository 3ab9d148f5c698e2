"""`make lab` as the README has it: the printed address opens the start page, and from there the stills are seen."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import lab
import pytest
from explorer_page import Log
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def printed_address(tmp_path):
    if shutil.which("make") is None or not (PROJECT / ".venv" / ".installed").exists():
        pytest.skip("there is no make here, or `make lab` has not been installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "lab.log"
    options = f"--allow-root --no-browser --port={port} --ServerApp.port_retries=0"
    with log.open("w") as output:
        process = subprocess.Popen(
            ["make", "lab", f"LAB_ARGS={options}"],
            stdout=output, stderr=subprocess.STDOUT, cwd=PROJECT, env=lab.environment(log), start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while not (found := re.search(rf"http://127\.0\.0\.1:{port}/\S+", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield found[0]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def test_the_printed_address_is_the_start_page_and_stills_are_found(new_page, printed_address):
    new_page.goto(printed_address)
    expect(new_page.get_by_role("heading", name="Transformer Parts: start here")).to_be_visible(timeout=90_000)
    log = Log(new_page)
    new_page.get_by_role("link", name="04 · RoPE").click()
    still = new_page.locator("img[src*='figures/rope_clocks.png']")
    still.scroll_into_view_if_needed(timeout=90_000)
    still.evaluate("image => image.decode()")
    assert still.evaluate("image => image.naturalWidth") > 1000
    assert log == []
