"""Exercises whose checkers name the mistake."""
