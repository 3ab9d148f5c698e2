"""Build the static site: every notebook as one page, with its explorers alive and nothing to be fetched.

    python tools/make_site.py [--out FOLDER] [--values N] [--frames N] [--jobs N] [--language CODE] [notebook ...]

Without names all notebooks of the language are built, and index.html.  A language without notebooks of its own gets
those of notebooks/en, with the words of pages, explorers and sheets in the language.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import notebooks
from publish.index import index
from publish.notebook_page import MOST_BYTES, Link, links, page
from publish.recorded_panel import Limits

from transformer_parts.language import available

PROJECT = Path(__file__).resolve().parents[1]


def build(path: Path, pages: list[Link], out: Path, limits: Limits, language: str | None = None) -> str:
    """Write the page of a notebook and return a line that says what is in it.

    Raises
    ------
    ValueError
        If the page is larger than a page may be.
    """
    began = time.perf_counter()
    html, explorers = page(path, pages, limits, language=language)
    size = len(html.encode())
    if size > MOST_BYTES:
        raise ValueError(f"{path.name}: got a page of {size:,} bytes, want at most {MOST_BYTES:,}")
    (out / f"{path.stem}.html").write_text(html, "utf-8")
    frames = sum(explorer.frames for explorer in explorers)
    seconds = time.perf_counter() - began
    return f"{path.stem}.html  {size / 1e6:.1f} MB, {len(explorers)} explorers, {frames} frames, {seconds:.0f} s"


def build_all(
    paths: Sequence[Path], pages: list[Link], out: Path, limits: Limits, jobs: int, language: str
) -> Iterator[str]:
    """Write the pages of notebooks, and yield the line about each when it is written."""
    # The longest first, so that none is left alone at the end.
    by_size = sorted(paths, key=lambda path: -path.stat().st_size)
    if jobs == 1:
        yield from (build(path, pages, out, limits, language) for path in by_size)
        return
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(build, path, pages, out, limits, language) for path in by_size]
        for future in as_completed(running):
            yield future.result()


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the pages named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PROJECT / "site")
    parser.add_argument("--values", type=int, default=Limits.values, help="most values of one control")
    parser.add_argument("--frames", type=int, default=Limits.frames, help="about so many frames of one explorer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="notebooks built at the same time")
    parser.add_argument("--language", choices=available(), default="en", help="language of the site's words")
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args(arguments)
    found = notebooks.notebooks()
    own = [path for path in found if path.parent.name == arguments.language]
    every = own or [path for path in found if path.parent.name == "en"]
    pages, limits = links(every), Limits(arguments.values, arguments.frames)
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    chosen = [path.resolve() for path in arguments.notebooks] or every
    for done, line in enumerate(build_all(chosen, pages, arguments.out, limits, arguments.jobs, arguments.language), 1):
        print(f"[{done}/{len(chosen)}] {line}", flush=True)
    (arguments.out / "index.html").write_text(index(every, language=arguments.language), "utf-8")
    print(f"{arguments.out / 'index.html'}  {time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    sys.exit(main())
