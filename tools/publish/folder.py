"""A page taken apart into files, for servers that forbid scripts and styles within pages.

The policy that it keeps is `POLICY`.  A page in one file has the same contents in one piece.
"""

import base64
import re
from html import unescape
from pathlib import Path

POLICY = "default-src 'self'; img-src 'self' data:"
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_FONT = re.compile(r"url\(data:font/woff;base64,([^)]+)\)")
_SCRIPT = re.compile(r'<script(?: type="([^"]*)")?(?: id="([^"]*)")?>(.*?)</script>\n?', re.DOTALL)
_TAG = re.compile(r"<[a-z][^<>]*>")
_ATTRIBUTE = re.compile(r' style="([^"]*)"')


def apart(html: str, stem: str) -> dict[str, bytes]:
    """Return the files of a page, by their paths in the folder of the site.

    Modules become plain scripts that wait for the page, because a page that is opened from a file may load no modules.
    """
    files: dict[str, bytes] = {}
    rules: dict[str, int] = {}

    def with_rule(tag: re.Match) -> str:
        def rule(found: re.Match) -> str:
            return f' data-rule="{rules.setdefault(unescape(found[1]), len(rules))}"'

        return _ATTRIBUTE.sub(rule, tag[0])

    def script(found: re.Match) -> str:
        kind, name, source = found[1], found[2], found[3]
        if kind == "text/plain":
            return f'<template id="{name}">{source}</template>\n'
        path = f"scripts/{name or 'contents'}.js"
        files[path] = f"(() => {{\n{source}\n}})();\n".encode()
        return f'<script defer src="{path}"></script>\n'

    css = _STYLE.search(html)[1]
    head, body = _STYLE.sub(f'<link rel="stylesheet" href="styles/{stem}.css">', html).split("<body", 1)
    body = _SCRIPT.sub(script, body)
    # A template holds the drawings, in which nothing is a tag.
    body = _TAG.sub(with_rule, body)
    if font := _FONT.search(css):
        files[f"fonts/{stem}.woff"] = base64.b64decode(font[1])
        css = css.replace(font[0], f"url(../fonts/{stem}.woff)")
    css += "".join(f'\n[data-rule="{number}"] {{ {declarations} }}' for declarations, number in rules.items())
    files[f"styles/{stem}.css"] = css.encode()
    files[f"{stem}.html"] = f"{head}<body{body}".encode()
    return files


def write(files: dict[str, bytes], out: Path) -> None:
    """Write the files of a page into the folder of the site."""
    for path, content in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
