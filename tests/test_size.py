"""`make size` counts code, and neither docstrings nor comments nor blank lines."""

import size

PYTHON = '''
"""Words of a module,
on two lines."""

# a comment
x = (
    1,  # one
)

def f():
    """Words of a function."""
    return """a string
that is no docstring"""
'''
SCRIPT = """
/* Words,
   on two lines. */
// a comment
const x = 1; // one
  // another

const y = 2;
"""


def test_lines_of_code():
    assert size.code_lines(PYTHON) == 6
    assert size.script_lines(SCRIPT) == 2


def test_every_room_has_its_size():
    found = size.sizes()
    assert {"maths", "draw", "explore", "learn", "models", "runs", "lib, JavaScript", "tests"} <= set(found)
    assert all(0 < counted.code < counted.lines for counted in found.values())
