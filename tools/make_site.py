"""Build the static site: every notebook as one page, with its explorers alive and nothing to be fetched.

    python tools/make_site.py [--out FOLDER] [--values N] [--frames N] [--jobs N] [notebook ...]

Without names all of notebooks/en is built, and index.html.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat
import notebooks
from publish.index import index
from publish.page import MOST_BYTES, Link, page, title_of
from publish.ranges import Limits

PROJECT = Path(__file__).resolve().parents[1]


def links(paths: list[Path]) -> list[Link]:
    """Return the pages of notebooks, in order."""
    return [Link(path.stem, title_of(nbformat.read(path, as_version=4))) for path in paths]


def build(path: Path, pages: list[Link], out: Path, limits: Limits) -> str:
    """Write the page of a notebook and return a line that says what is in it.

    Raises
    ------
    ValueError
        If the page is larger than a page may be.
    """
    began = time.perf_counter()
    html, explorers = page(path, pages, limits)
    size = len(html.encode())
    if size > MOST_BYTES:
        raise ValueError(f"{path.name}: got a page of {size:,} bytes, want at most {MOST_BYTES:,}")
    (out / f"{path.stem}.html").write_text(html, "utf-8")
    frames = sum(explorer.frames for explorer in explorers)
    seconds = time.perf_counter() - began
    return f"{path.stem}.html  {size / 1e6:.1f} MB, {len(explorers)} explorers, {frames} frames, {seconds:.0f} s"


def main() -> None:
    """Build the pages named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PROJECT / "site")
    parser.add_argument("--values", type=int, default=Limits.values, help="most values of one control")
    parser.add_argument("--frames", type=int, default=Limits.frames, help="about so many frames of one explorer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="notebooks built at the same time")
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args()
    every = [path for path in notebooks.notebooks() if path.parent.name == "en"]
    pages, limits = links(every), Limits(arguments.values, arguments.frames)
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    chosen = [path.resolve() for path in arguments.notebooks] or every
    # The longest first, so that none is left alone at the end.
    chosen.sort(key=lambda path: -path.stat().st_size)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        running = [pool.submit(build, path, pages, arguments.out, limits) for path in chosen]
        for done, future in enumerate(as_completed(running), 1):
            print(f"[{done}/{len(chosen)}] {future.result()}", flush=True)
    (arguments.out / "index.html").write_text(index(every, pages), "utf-8")
    print(f"{arguments.out / 'index.html'}  {time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    sys.exit(main())
