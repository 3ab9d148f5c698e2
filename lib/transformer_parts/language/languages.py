"""Languages: what turns messages into text, from a gettext catalogue."""

import gettext
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter

from transformer_parts.language.messages import Message, fill

ENGLISH = "en"
#: The developers' language: English in which everything that came through the seam is marked, as in ⟦Reset⟧.
PSEUDO = "pseudo"
#: Name of the environment variable that chooses the language where no argument does.
VARIABLE = "TRANSFORMER_PARTS_LANGUAGE"
#: Name of the catalogues, ``locale/<language>/LC_MESSAGES/transformer_parts.mo``.
DOMAIN = "transformer_parts"
LOCALE = Path(__file__).parent / "locale"


@dataclass(frozen=True)
class Language:
    """A language, which `language` finds by name; it never changes, and threads may share it."""

    name: str  # its code: "en", "zh", …
    #: the translations; what it lacks stays English.
    catalogue: gettext.NullTranslations = field(repr=False, compare=False)

    def text(self, words: str) -> str:
        """Return a message in this language, the messages among its values first; other strings stay as they are.

        Examples
        --------
        >>> from transformer_parts.language import _
        >>> language("pseudo").text(_("{n} of {all}", n=1, all=_("all heads")))
        '1 ⟦of⟧ ⟦all heads⟧'
        >>> language("pseudo").text("as it is")
        'as it is'
        """
        if not isinstance(words, Message):
            return words
        values = {
            name: self.text(value) if isinstance(value, Message) else value for name, value in words.values.items()
        }
        return fill(self._template(words), values)

    def _template(self, words: Message) -> str:
        if not words.template:  # gettext keeps the catalogue's own header under the empty string
            return ""
        if words.plural is None:
            return self.catalogue.gettext(words.template)
        return self.catalogue.ngettext(words.template, words.plural, words.values["n"])


class _Pseudo(Language):
    """English with every piece of a template that has a word in ⟦ ⟧; values stay outside the brackets."""

    def _template(self, words: Message) -> str:
        template = super()._template(words)
        if not words.values:
            return _marked(template)
        pieces = []
        for literal, name, form, conversion in Formatter().parse(template):
            pieces.append(_marked(literal).replace("{", "{{").replace("}", "}}"))
            if name is not None:
                pieces.append(f"{{{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}}}")
        return "".join(pieces)


def _marked(text: str) -> str:
    """Mark each paragraph and each item of a list, so that Markdown is still read as it is meant; code stays."""
    pieces = re.split(r"(^```[\s\S]*?^```$|\n\s*\n|^- )", text, flags=re.MULTILINE)
    pieces[::2] = [
        re.sub(r"\A(\s*)(.*[A-Za-z]{2}.*?)(\s*)\Z", r"\1⟦\2⟧\3", piece, flags=re.DOTALL) for piece in pieces[::2]
    ]
    return "".join(pieces)


def available(folder: Path = LOCALE) -> tuple[str, ...]:
    """Return the names of the languages there are: English, those with a compiled catalogue, the developers' own."""
    return (ENGLISH, *sorted(path.parts[-3] for path in folder.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")), PSEUDO)


def language(name: str | Language | None = None, *, folder: Path = LOCALE) -> Language:
    """Return a language by name; by default that of the environment variable TRANSFORMER_PARTS_LANGUAGE, or English.

    Parameters
    ----------
    name : str or Language, optional; its code; a language is returned as it is
    folder : Path; where the catalogues are

    Raises
    ------
    ValueError
        If there is no such language.

    Examples
    --------
    >>> language("en")
    Language(name='en')
    """
    if isinstance(name, Language):
        return name
    if name is None:
        name = os.environ.get(VARIABLE) or ENGLISH
    names = available(folder)
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"language: got {name!r}, want one of {', '.join(map(repr, names))}")
    if name == ENGLISH:
        return Language(name, gettext.NullTranslations())
    if name == PSEUDO:
        return _Pseudo(name, gettext.NullTranslations())
    return Language(name, gettext.translation(DOMAIN, folder, [name]))
