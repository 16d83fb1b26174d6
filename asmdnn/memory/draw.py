"""A memory layout as a picture in a file."""

import os
from pathlib import Path

from asmdnn.errors import InvalidArguments
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.picture import scene_of
from asmdnn.memory.png import write_png
from asmdnn.memory.svg import svg_of


def draw(desc: MemoryDesc, path: str | os.PathLike[str] | None = None, names: str | None = None) -> str:
    """See MemoryDesc.draw; `names` are letters for the dims."""
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
