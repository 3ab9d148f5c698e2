"""Reads the bank of interview questions and of statements to judge from ``questions/``.

Each language has a folder there; an entry has the same id in all of them, and English has every entry.  One TOML file
holds one topic: ``topic``, any number of ``[[questions]]`` and of ``[[claims]]``.  `QUESTION_FIELDS` and
`CLAIM_FIELDS` say what each has; `questions/README.md` shows one of each.  Texts are written in a small part of
Markdown, with LaTeX between dollar signs.  ``<<name:format>>`` in a text becomes a number that the entry's evidence
function computes when the text is shown, so that no number is typed that the library can compute.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from transformer_parts import language as languages
from transformer_parts.language import Language, Message
from transformer_parts.learn import evidence
from transformer_parts.learn.interview import LEVELS, Bank, Claim, FollowUp, Question
from transformer_parts.maths import require

#: What an entry of a file has, and of which kind.  Those in `OPTIONAL` may be left out.
QUESTION_FIELDS = MappingProxyType(
    {
        "id": str,
        "level": str,
        "everybody_asks": bool,
        "question": str,
        "short": str,
        "whiteboard": str,
        "follow_ups": list,
        "wrong": str,
        "refuted": str,
        "evidence": str,
        "sources": list,
        "notebook": str,
    }
)
CLAIM_FIELDS = MappingProxyType(
    {"id": str, "statement": str, "holds": bool, "shown": str, "evidence": str, "verdict": str, "notebook": str}
)
OPTIONAL = ("everybody_asks", "verdict")
_KINDS = MappingProxyType({str: "text", bool: "true or false", list: "a list"})


def load_bank(folder: Traversable | Path | None = None, *, language: str | Language | None = None) -> Bank:
    """Read all TOML files of a folder, by default the library's own in a language.

    What a language's folder lacks stays English.

    Parameters
    ----------
    folder : Path, optional; where the files are; ``questions/en`` and the language's own beside it if not given
    language : str or Language, optional; as `transformer_parts.language.language` takes it

    Raises
    ------
    ValueError
        If a file is no TOML or an entry lacks something, has too much, or names what is not there; the message names
        file, entry and field.  If there is no such language.

    Examples
    --------
    >>> bank = load_bank()
    >>> sum(question.everybody_asks for question in bank.questions)
    10
    """
    if folder is not None:
        require.instance("folder", folder, Traversable, Path)
        if not folder.is_dir():
            raise require.refusal("folder", str(folder), "a folder that is there")
        return _read(folder)
    spoken, every = languages.language(language), files(__package__).joinpath("questions")
    bank, own = _read(every.joinpath("en")), every.joinpath(spoken.name)
    if spoken.name != "en" and own.is_dir():
        bank = translated(bank, _read(own))
    if spoken.name == languages.PSEUDO:
        bank = Bank(
            tuple(_each_text(question, spoken) for question in bank.questions),
            tuple(_each_text(claim, spoken) for claim in bank.claims),
        )
    return bank


def translated(english: Bank, other: Bank) -> Bank:
    """Return the English bank with the entries that another language has in their places.

    Raises
    ------
    ValueError
        If the other bank has an entry that English lacks, or one whose level, evidence, notebook or truth differ.
    """
    return Bank(
        _in_place("question", english.questions, other.questions, ("level", "everybody_asks", "evidence", "notebook")),
        _in_place("claim", english.claims, other.claims, ("holds", "evidence", "verdict", "notebook")),
    )


def _in_place(kind: str, english: tuple, others: tuple, same: tuple[str, ...]) -> tuple:
    own = {entry.id: entry for entry in others}
    if unknown := sorted(own.keys() - {entry.id for entry in english}):
        raise require.refusal(f"{kind} {unknown[0]}", "an id that English lacks", "the ids of questions/en")
    for entry in english:
        for name in same:
            wanted, got = getattr(entry, name), getattr(own.get(entry.id, entry), name)
            if got != wanted:
                raise require.refusal(f"{kind} {entry.id}, {name}", repr(got), f"{wanted!r}, as in English")
    return tuple(own.get(entry.id, entry) for entry in english)


def _each_text(entry: Question | Claim, spoken: Language) -> Question | Claim:
    """Return an entry with each of its texts as a message in a language, which marks it where it is the pseudo one."""
    names = ("topic", "question", "short", "whiteboard", "wrong", "refuted", "statement", "shown")
    texts = {name: spoken.text(Message(getattr(entry, name))) for name in names if hasattr(entry, name)}
    if isinstance(entry, Question):
        texts["sources"] = tuple(spoken.text(Message(source)) for source in entry.sources)
        texts["follow_ups"] = tuple(
            FollowUp(spoken.text(Message(item.question)), spoken.text(Message(item.answer)))
            for item in entry.follow_ups
        )
    return replace(entry, **texts)


def _read(folder: Traversable | Path) -> Bank:
    questions, claims = [], []
    for file in sorted((item for item in folder.iterdir() if item.name.endswith(".toml")), key=lambda item: item.name):
        try:
            content = tomllib.loads(file.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            # TOML or UTF-8 that is none, a number of too many digits, or lists in lists without end
            raise require.refusal(file.name, str(error), "TOML in UTF-8") from None
        _check_keys(file.name, content, {"topic": str, "questions": list, "claims": list}, ("questions", "claims"))
        for number, entry in enumerate(content.get("questions", ()), 1):
            questions.append(_question(_name(file.name, "question", number, entry), content["topic"], entry))
        for number, entry in enumerate(content.get("claims", ()), 1):
            claims.append(_claim(_name(file.name, "claim", number, entry), content["topic"], entry))
    for kind, entries in (("question", questions), ("claim", claims)):
        ids = [entry.id for entry in entries]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise require.refusal(f"id of a {kind}", f"{twice[0]} twice", "one of its own for each")
    return Bank(tuple(questions), tuple(claims))


def _name(file: str, kind: str, number: int, entry: object) -> str:
    """Return what an error calls an entry: its place in the file, and its id where it has one."""
    own = f" ({entry['id']})" if isinstance(entry, dict) and "id" in entry else ""
    return f"{file}, {kind} {number}{own}"


def _question(name: str, topic: str, entry: object) -> Question:
    _check_keys(name, entry, QUESTION_FIELDS, OPTIONAL)
    require.one_of(f"{name}, level", entry["level"], LEVELS)
    if len(entry["follow_ups"]) != 2:
        raise require.refusal(f"{name}, follow_ups", str(len(entry["follow_ups"])), "two")
    for number, item in enumerate(entry["follow_ups"], 1):
        _check_keys(f"{name}, follow-up {number}", item, {"question": str, "answer": str})
    if not entry["sources"] or not all(isinstance(source, str) and source.strip() for source in entry["sources"]):
        raise require.refusal(f"{name}, sources", repr(entry["sources"]), "at least one text")
    follow_ups = tuple(FollowUp(item["question"].strip(), item["answer"].strip()) for item in entry["follow_ups"])
    texts = {key: entry[key].strip() for key, kind in QUESTION_FIELDS.items() if kind is str}
    made = Question(
        topic=topic,
        level=LEVELS[LEVELS.index(texts.pop("level"))],
        follow_ups=follow_ups,
        sources=tuple(entry["sources"]),
        everybody_asks=entry.get("everybody_asks", False),
        **texts,
    )
    _check_references(name, made)
    _check_texts(name, {key: texts[key] for key in ("question", "short", "whiteboard", "wrong", "refuted")})
    _check_texts(name, {f"follow-up {n}": f"{f.question} {f.answer}" for n, f in enumerate(follow_ups, 1)})
    _check_texts(name, {"sources": " ".join(made.sources)})
    if not evidence.names_in(made.refuted):
        raise require.refusal(f"{name}, refuted", "no computed number", "one at least, as <<name:format>>")
    return made


def _claim(name: str, topic: str, entry: object) -> Claim:
    _check_keys(name, entry, CLAIM_FIELDS, OPTIONAL)
    texts = {key: entry[key].strip() for key, kind in CLAIM_FIELDS.items() if kind is str and key in entry}
    made = Claim(topic=topic, holds=entry["holds"], **texts)
    _check_references(name, made)
    _check_texts(name, {"statement": made.statement, "shown": made.shown})
    if not evidence.names_in(made.shown):
        raise require.refusal(f"{name}, shown", "no computed number", "one at least, as <<name:format>>")
    return made


def _check_keys(name: str, entry: object, fields: Mapping[str, type], optional: tuple[str, ...] = ()) -> None:
    if not isinstance(entry, dict):
        raise require.refusal(name, repr(entry), "a table of fields")
    for key, kind in fields.items():
        if key not in entry:
            if key not in optional:
                raise require.refusal(f"{name}, {key}", "nothing", _KINDS[kind])
        elif not isinstance(entry[key], kind) or (kind is str and not entry[key].strip()):
            raise require.refusal(f"{name}, {key}", repr(entry[key]), _KINDS[kind])
    unknown = sorted(entry.keys() - fields.keys())
    if unknown:
        raise require.refusal(f"{name}, {unknown[0]}", "a field of that name", f"only {', '.join(fields)}")


def _check_references(name: str, entry: Question | Claim) -> None:
    if not re.fullmatch(r"\d\d_\w+", entry.notebook):
        raise require.refusal(f"{name}, notebook", repr(entry.notebook), "the stem of a notebook, such as 04_rope")
    try:
        evidence.find(entry.evidence)
    except ValueError as error:
        raise require.refusal(f"{name}, evidence", repr(entry.evidence), str(error).split("want ")[-1]) from None


def _check_texts(name: str, texts: Mapping[str, str]) -> None:
    for field, text in texts.items():
        for complaint in _faults(text):
            raise require.refusal(f"{name}, {field}", complaint, "plain Markdown with formulas between dollar signs")


def _faults(text: str) -> Iterator[str]:
    """Yield what would not be shown as it is meant."""
    bare = evidence.PLACE.sub("0", text)
    outside = "".join(re.split(r"^```.+?^```$|\$\$.+?\$\$|\$[^$]+\$|`[^`]+`", bare, flags=re.DOTALL | re.MULTILINE))
    if "$" in outside:
        yield "a dollar sign that nothing closes"
    if outside.count("**") % 2:
        yield "bold that nothing closes"
    if "\\" in outside:
        yield f"LaTeX outside a formula, at {outside[outside.index(chr(92)) :][:20]!r}"
    if re.search(r"</?[A-Za-z][^<>]*>", outside):
        yield "HTML"
    if re.search(r"^(#|\d+\. )", outside, re.MULTILINE):
        yield "a heading or a numbered list"
    if any("|" in formula for line in bare.splitlines() if line[:1] == "|" for formula in line.split("$")[1::2]):
        yield "a | in a formula of a table, which ends its cell"
