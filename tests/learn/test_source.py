"""Shown source is the source that runs."""

import ast
import inspect
import math
import textwrap

import pytest
from IPython.display import Markdown

from transformer_parts.learn.source import show, source
from transformer_parts.maths import norms, rope

FUNCTIONS = (rope.rotate, rope.inv_freq, norms.rms_norm, norms.layer_norm, rope.turn_interleaved)


def plain(x):
    return x + 1


def only_docstring():
    """Nothing but words."""


def quoted(x):
    """Words over
    several lines.
    """
    # a comment stays
    return f"""{x}"""


class Nested:
    def method(self, x):
        """Words."""
        return x


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_source_is_that_of_the_function_without_its_docstring(function):
    shown = ast.parse(source(function)).body[0]
    whole = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert ast.get_docstring(whole)
    whole.body = whole.body[1:]
    assert ast.get_docstring(shown) is None
    assert ast.dump(shown) == ast.dump(whole)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_docstring_is_there_on_request(function):
    assert source(function, docstring=True) == inspect.getsource(function).rstrip()


def test_function_without_docstring_is_whole():
    assert source(plain) == "def plain(x):\n    return x + 1"


def test_docstring_that_is_the_whole_body_stays():
    assert source(only_docstring).endswith('"""Nothing but words."""')


def test_comments_and_later_strings_stay():
    assert source(quoted) == 'def quoted(x):\n    # a comment stays\n    return f"""{x}"""'


def test_method_is_shown_from_the_left_edge():
    assert source(Nested.method) == "def method(self, x):\n    return x"
    assert source(Nested).startswith("class Nested:")


@pytest.mark.parametrize("thing", [len, math.sin, 3, "text", None])
def test_what_has_no_python_source_is_refused(thing):
    with pytest.raises(ValueError, match=r"function: got .*, want a function with Python source"):
        source(thing)


def test_show_is_markdown_of_each_function():
    shown = show(plain, rope.rotate)
    assert isinstance(shown, Markdown)
    code = f"```python\n{source(plain)}\n\n\n{source(rope.rotate)}\n```"
    # Markdown is read inside of HTML where empty lines are around it.
    title = "<summary>The library's own <code>plain</code>, <code>rotate</code></summary>"
    assert shown.data == f"<details>{title}\n\n{code}\n\n</details>"
