"""Every exercise of the room `learn`, found by itself, so that a new one is tried without a new test."""

import importlib
import pkgutil

from transformer_parts import learn
from transformer_parts.learn.exercise import Exercise

ROOM = f"{learn.__name__}."
MODULES = [importlib.import_module(info.name) for info in pkgutil.walk_packages(learn.__path__, ROOM)]
#: By module and name, such as "rope.ROTATE".
EXERCISES = {
    f"{module.__name__.removeprefix(ROOM)}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Exercise)
}
