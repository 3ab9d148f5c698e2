"""Recorded measurements: runs too long for a page, each with the command that makes it again."""
