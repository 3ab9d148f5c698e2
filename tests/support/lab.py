"""Drive a real JupyterLab in Chromium: start the server, open a notebook, run it, look at its explorers.

The browser tests, the browser benchmark and the screenshots all go through this module.
"""

import ast
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

# No network: Chromium's own background requests are turned off.
_CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str | None:
    """Return the path of an installed Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a headless Chromium and close it at the end."""
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=chromium_path(), args=_CHROMIUM_FLAGS)
        try:
            yield instance
        finally:
            instance.close()


def environment(log: Path) -> dict[str, str]:
    """Return the environment in which the server of that log runs: nothing of the user's own Jupyter is read."""
    home = log.parent / "jupyter-home"
    return dict(os.environ) | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "TRANSFORMER_PARTS_RATINGS": str(home / "ratings.json"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


@contextmanager
def server(root: Path, log: Path) -> Iterator[str]:
    """Start JupyterLab over the folder `root` with settings of its own and yield its address with the token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    page = Path(environment(log)["JUPYTER_CONFIG_DIR"]) / "labconfig" / "page_config.json"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text('{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}')
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}", "--ServerApp.port_retries=0",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment(log), cwd=root)
    try:
        _wait_for_answer(f"http://127.0.0.1:{port}/api?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab/tree/{{path}}?token={token}&reset"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for_answer(address: str, process: subprocess.Popen, log: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start; its log:\n{log.read_text()[-4000:]}")


def open_notebook(page: Page, address: str, path: str) -> None:
    """Open a notebook in the page and wait for its kernel."""
    page.goto(address.format(path=path))
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=90_000)
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=90_000,
    )


def run_all(page: Page, seconds: float = 120) -> None:
    """Run all cells and wait until the kernel has answered each of them."""
    page.set_default_timeout(seconds * 1000)
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.set_default_timeout(30_000)


def kernel(page: Page, code: str = "", value: str = "None") -> object:
    """Run code in the notebook's kernel, outside its cells, and return the JSON value of an expression.

    Raises
    ------
    RuntimeError
        If either raises in the kernel.
    """
    reply = page.evaluate(
        """async ([code, value]) => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            const expressions = {value: `__import__("json").dumps(${value})`};
            const request = {code, silent: true, store_history: false, user_expressions: expressions};
            return (await kernel.requestExecute(request).done).content;
        }""",
        [code, value],
    )
    answer = reply["user_expressions"]["value"] if reply["status"] == "ok" else reply
    if answer["status"] != "ok":
        raise RuntimeError(f"{answer['ename']}: {answer['evalue']}")
    return json.loads(ast.literal_eval(answer["data"]["text/plain"]))


def shut_down_kernel(page: Page) -> None:
    """End the notebook's kernel."""
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")


def cell_texts(page: Page) -> list[str]:
    """Return the text of every cell, outputs included, as the page shows it."""
    return page.evaluate(
        """async () => {
            const content = window.jupyterapp.shell.currentWidget.content;
            const texts = [];
            for (const [index, cell] of content.widgets.entries()) {
                await content.scrollToItem(index);
                texts.push(cell.node.innerText);
            }
            return texts;
        }"""
    )


def hide_sidebar(page: Page) -> None:
    """Leave the whole width of the page to the notebook."""
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")


def cell(page: Page, index: int) -> Locator:
    """Return a cell of the notebook, scrolled into view."""
    page.evaluate("index => window.jupyterapp.shell.currentWidget.content.scrollToItem(index, 'start')", index)
    found = page.locator(f".jp-Cell[data-windowed-list-index='{index}']")
    found.scroll_into_view_if_needed()
    return found


def set_theme(page: Page, name: str) -> None:
    """Change JupyterLab's theme ("JupyterLab Dark", "JupyterLab Light")."""
    if page.locator("body").get_attribute("data-jp-theme-name") != name:
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
    page.locator(f"body[data-jp-theme-name='{name}']").wait_for(state="attached")
