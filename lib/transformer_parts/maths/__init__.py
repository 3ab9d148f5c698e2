"""The mathematics of the parts: arrays in, arrays out.

Shape letters, used in every docstring of this package:

====== ==================================================
letter meaning
====== ==================================================
B      batch
L      query length (the sequence, where there is one)
S      key length
D      model width (``d_model``)
H      query heads (``n_heads``)
G      key/value heads (``n_kv_heads``); H is a multiple of G
K      width of a head (``head_dim``)
P      rotated pairs of a head, K/2
F      width of the feed-forward layer (``d_ff``)
V      vocabulary
====== ==================================================

Leading axes ("…") broadcast.  A floating dtype is kept; integers become float64; float16 and bfloat16 are
computed in float32 and rounded once, at the end.  Vectors are columns, angles are counter-clockwise and in
radians, positions count from 0.

Bad input raises ``ValueError`` before anything is changed: a wrong type, a shape that does not fit, an entry that is
not finite, a number out of its range, an unknown name.  Docstrings have a section "Raises" only for what is not in
this list.  A parameter that needs few words has them on its line, after the type and a semicolon.
"""
