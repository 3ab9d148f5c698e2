"""Transformer Parts: a modern Transformer decoder, taken apart and computed with NumPy.

Rooms, each importing only those before it: ``maths`` (NumPy in, NumPy out), ``models`` (published
configurations and the real model), ``draw`` (matplotlib figures), ``explore`` (panels of sliders) and
``learn`` (exercises and their checkers).
"""
