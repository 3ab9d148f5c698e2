"""Panels of sliders over the pictures of `draw`, computed by `maths`."""
