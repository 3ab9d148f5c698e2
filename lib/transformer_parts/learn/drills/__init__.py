"""Drills with new numbers each time, whose checkers name the slip."""

from transformer_parts.learn.drills.catalogue import DRILLS
from transformer_parts.learn.drills.drill import APART, Drill, Slip

__all__ = ["APART", "DRILLS", "Drill", "Slip"]
