"""Memory layouts as text and as pictures: which element lies where."""

from asmdnn.show.files import draw
from asmdnn.show.text import layout

__all__ = ["draw", "layout"]
