"""The book's text out of a Debian package: order, blocks, what is left out, and files that are no such package."""

import io
import tarfile

import pytest

from transformer_parts.runs.long_text import FOLDER, join_pages, read_package


def page(body: str, following: str = "") -> str:
    link = f'<link rel="next" href="{following}"/>' if following else ""
    return f"<html><head><title>not this</title>{link}</head><body>{body}</body></html>"


def package(path, pages: dict[str, str], *, member: str = "data.tar.xz"):
    """Write an ar archive with a tar of the pages, as dpkg does."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz") as tar:
        for name, text in pages.items():
            info = tarfile.TarInfo(f"./{FOLDER}{name}")
            info.size = len(data := text.encode())
            tar.addfile(info, io.BytesIO(data))
    parts = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (member, archive.getvalue())]
    out = b"!<arch>\n"
    for name, data in parts:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{0o100644:<8}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) % 2)
    path.write_bytes(out)
    return path


def test_pages_follow_one_another_and_blocks_are_lines():
    pages = {
        "b.html": page("<div class='para'>Second <em>page</em>.</div>", "a.html"),
        "index.html": page(
            '<div id="banner">buy</div><ul class="docnav top"><li>Next</li></ul><h1>A\n title</h1><p>One<br/>two</p>'
            "<pre>$ ls\n  x</pre><div class='toc'><p>contents</p></div><script>no()</script>",
            "b.html",
        ),
        "a.html": page("<p>Third.</p>", "index.html"),
    }
    assert join_pages(pages, "index.html") == "A title\nOne\ntwo\n$ ls\n  x\nSecond page.\nThird.\n"


def test_the_package_is_read_in_memory(tmp_path):
    path = package(tmp_path / "debian-handbook_1_all.deb", {"index.html": page("<p>Ünïcode</p>"), "x.css": "no"})
    book = read_package(path)
    assert (book.text, book.package) == ("Ünïcode\n", path.name)
    assert len(book.sha256) == 64


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_package(tmp_path / "none.deb")
    (tmp_path / "x.deb").write_bytes(b"not an archive")
    with pytest.raises(ValueError, match=r"path: got .* without data\.tar, want a Debian package"):
        read_package(tmp_path / "x.deb")
    with pytest.raises(ValueError, match=r"without data\.tar"):
        read_package(package(tmp_path / "y.deb", {}, member="else.tar.xz"))
    with pytest.raises(ValueError, match=r"path: got .*index\.html, want the package debian-handbook"):
        read_package(package(tmp_path / "z.deb", {"other.html": page("")}))
    damaged = package(tmp_path / "z.deb", {"index.html": page("<p>text</p>" * 500)})
    whole = damaged.read_bytes()
    at = whole.index(b"\xfd7zXZ")
    for data in (whole[:-150], whole[: at + 40] + bytes(40) + whole[at + 80 :], whole[:at] + bytes(len(whole) - at)):
        damaged.write_bytes(data)
        with pytest.raises(ValueError, match=r"path: got .*want a whole package debian-handbook"):
            read_package(damaged)
