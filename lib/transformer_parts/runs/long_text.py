"""A long free text: The Debian Administrator's Handbook, out of Debian's package, page after page.

The book is by Raphaël Hertzog and Roland Mas, © 2003-2015 the authors and Freexian SARL, licence GPL-2.0+ or
CC-BY-SA-3.0.  Nothing of it is part of this library: ``apt-get download debian-handbook`` fetches the package into
the current folder, and what is read from it stays in memory.
"""

import hashlib
import io
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from transformer_parts.maths import require

LICENSE = "GPL-2.0+ or CC-BY-SA-3.0"
FOLDER = "usr/share/doc/debian-handbook/html/en-US/"
FIRST_PAGE = "index.html"
_MAGIC = b"!<arch>\n"
_HEADER = 60
# what is on a page and is not the book's text
_LEFT_OUT = frozenset({"docnav", "toc", "footnotes"})
_BREAKS = frozenset({"div", "p", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "tr", "br", "table"})
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "col"})


@dataclass(frozen=True)
class LongText:
    """A text and where it is from."""

    text: str  # the text
    package: str  # package, license, sha256: the package's file, the licence, and the SHA-256 of the text in UTF-8
    license: str
    sha256: str


def read_package(path: str | Path) -> LongText:
    """Return the text of the handbook in a Debian package ``debian-handbook_….deb``, one paragraph a line.

    A missing file raises FileNotFoundError, another one ValueError.
    """
    path = Path(path)
    pages = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(_data_archive(path))) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if member.isfile() and name.startswith(FOLDER) and name.endswith(".html"):
                    pages[name.removeprefix(FOLDER)] = archive.extractfile(member).read().decode("utf-8")
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        reason = str(error).partition("\n")[0]
        raise require.refusal("path", f"{path} ({reason})", "a whole package debian-handbook") from error
    if FIRST_PAGE not in pages:
        raise require.refusal("path", f"{path} without {FOLDER}{FIRST_PAGE}", "the package debian-handbook")
    text = join_pages(pages, FIRST_PAGE)
    return LongText(text, path.name, LICENSE, hashlib.sha256(text.encode("utf-8")).hexdigest())


def join_pages(pages: Mapping[str, str], first: str) -> str:
    r"""Return the text of HTML pages in the order in which each names the next one (``<link rel="next">``).

    Examples
    --------
    >>> pages = {"a": '<link rel="next" href="b"/><p>One <b>and</b>\n two.</p>', "b": "<p>Three.</p>"}
    >>> join_pages(pages, "a")
    'One and two.\nThree.\n'
    """
    parts, seen, name = [], set(), first
    while name in pages and name not in seen:
        seen.add(name)
        page = _Page()
        page.feed(pages[name])
        page.close()
        parts.append(page.text())
        name = page.next
    return "".join(parts)


def _data_archive(path: Path) -> bytes:
    """Return the member data.tar.* of a Debian package, which is an ``ar`` archive."""
    data = path.read_bytes()
    at = len(_MAGIC)
    while data.startswith(_MAGIC) and at + _HEADER <= len(data):
        name, size = data[at : at + 16].decode("ascii").strip().rstrip("/"), int(data[at + 48 : at + 58])
        at += _HEADER
        if name.startswith("data.tar"):
            return data[at : at + size]
        at += size + size % 2
    raise require.refusal("path", f"{path} without data.tar", "a Debian package")


class _Page(HTMLParser):
    """Collects a page's text, a line for each block, and the name of the next page."""

    def __init__(self):
        super().__init__()
        self.next = ""
        self._lines: list[str] = []
        self._line: list[str] = []
        self._silent = self._verbatim = 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "link" and attrs.get("rel") == "next":
            self.next = attrs.get("href", "")
        if tag in _BREAKS:
            self._end_line()
        if tag in _VOID:
            return
        silent = tag in ("head", "script", "style") or attrs.get("id") in ("banner", "title")
        if self._silent or silent or not _LEFT_OUT.isdisjoint((attrs.get("class") or "").split()):
            self._silent += 1
        if self._verbatim or tag == "pre":
            self._verbatim += 1

    def handle_startendtag(self, tag, attrs):
        if tag in _VOID:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag in _VOID:
            return
        if tag in _BREAKS:
            self._end_line()
        self._silent, self._verbatim = max(0, self._silent - 1), max(0, self._verbatim - 1)

    def handle_data(self, data):
        if not self._silent:
            self._line.append(data)

    def text(self) -> str:
        self._end_line()
        return "".join(f"{line}\n" for line in self._lines)

    def _end_line(self) -> None:
        text = "".join(self._line)
        text = text.strip("\n") if self._verbatim else " ".join(text.split())
        if text.strip():
            self._lines.append(text)
        self._line = []
