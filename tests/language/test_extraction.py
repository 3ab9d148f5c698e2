"""`make words` finds the words of the library, of the site's code and of its templates."""

from pathlib import Path

from babel.messages.extract import extract_from_dir
from babel.messages.frontend import parse_mapping_cfg

PROJECT = Path(__file__).parents[2]


def templates(folder: str) -> set[str]:
    with (PROJECT / "babel.cfg").open() as file:
        methods, options = parse_mapping_cfg(file)
    found = extract_from_dir(PROJECT / folder, methods, options, keywords={"_": None, "plural": (1, 2)})
    return {
        name for _file, _line, message, *_rest in found for name in ([message] if isinstance(message, str) else message)
    }


def test_words_of_panels_messages_and_templates_are_found():
    assert {"Showing the last valid setting.", "{token} at {place}"} <= templates("lib/transformer_parts/explore")
    assert {"Whiteboard answer", "Common wrong answer"} <= templates("tools")
