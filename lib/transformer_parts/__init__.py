"""Transformer Parts: a modern Transformer decoder, taken apart and computed with NumPy.

Rooms, each importing only those before it: ``maths`` (NumPy in, NumPy out), ``models`` (published
configurations and the real model), ``runs`` (recorded measurements), ``draw`` (matplotlib figures), ``learn``
(exercises and their checkers; without figures) and ``explore`` (panels of sliders).
"""
