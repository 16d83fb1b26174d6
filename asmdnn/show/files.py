"""A memory layout as a picture in a file."""

import os
from pathlib import Path

from asmdnn.errors import InvalidArguments
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
    suffix = Path(path).suffix
    if suffix not in (".svg", ".png"):
        raise InvalidArguments(f"path {os.fspath(path)!r} is no picture: end it in .svg or .png")
    try:
        if suffix == ".png":
            write_png(scene, os.fspath(path))
        else:
            Path(path).write_text(document, encoding="utf-8")
    except OSError as error:
        raise InvalidArguments(f"path {os.fspath(path)!r} cannot be written: {error.strerror}") from None
    return document
