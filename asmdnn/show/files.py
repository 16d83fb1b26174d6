"""A memory layout as a picture in a file."""

import os
from pathlib import Path

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.desc import MemoryDesc
from asmdnn.show.picture import scene_of
from asmdnn.show.png import write_png
from asmdnn.show.svg import svg_of


def draw(desc: MemoryDesc, path: str | os.PathLike[str] | None = None, names: str | None = None) -> str:
    """The layout of `desc` as a picture: an SVG document, also written to `path` if that ends in .svg, or as a .png.

    `names` are letters for the dims, such as "tnc"; the alias tells them otherwise.  PNG needs matplotlib (the extra
    `demo`), else Unimplemented is raised; InvalidArguments for other paths, those that cannot be written, and descs
    without layout or elements.
    """
    scene = scene_of(desc, names)
    document = svg_of(scene)
    if path is None:
        return document
    try:
        suffix = Path(path).suffix
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"path must be the path of a picture, not {shown(path)}") from None
    if suffix not in (".svg", ".png"):
        raise InvalidArguments(f"path {shown(os.fspath(path))} is no picture: end it in .svg or .png")
    try:
        if suffix == ".png":
            write_png(scene, os.fspath(path))
        else:
            Path(path).write_text(document, encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: characters that no name has
        reason = getattr(error, "strerror", None) or error
        raise InvalidArguments(f"path {shown(os.fspath(path))} cannot be written: {reason}") from None
    return document
