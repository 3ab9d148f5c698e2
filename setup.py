"""Compiles the catalogues of words for the build; everything else is in pyproject.toml."""

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCatalogues(build_py):
    """Writes each catalogue beside its source first, so that a wheel and an editable install both have it."""

    def run(self):
        for source in Path(__file__).parent.glob("lib/transformer_parts/language/locale/*/LC_MESSAGES/*.po"):
            with source.open("rb") as text, source.with_suffix(".mo").open("wb") as compiled:
                write_mo(compiled, read_po(text))
        super().run()


setup(cmdclass={"build_py": BuildWithCatalogues})
