"""The numbers behind the question bank, computed when they are shown."""

from transformer_parts.learn.evidence.lookup import MODULES, PLACE, fill, find, names_in

__all__ = ["MODULES", "PLACE", "fill", "find", "names_in"]
