"""Files that commands write: pages, arrays, packs; never in the place of a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asmdnn.errors import InvalidArguments

SUFFIX = ".onnx"  # of models


def check_output(option: str, path: str, *sources: str) -> None:
    """Raise InvalidArguments for a file that the command reads, and for one that has a model's name."""
    if path.endswith(SUFFIX) or any(is_same(path, source) for source in sources):
        raise InvalidArguments(f"{option} {path} would be in the place of a model or an input: name another file")


def is_same(path: str, source: str) -> bool:
    try:
        return Path(path).samefile(source)
    except OSError:  # there is none yet
        return False


def write_text(option: str, path: str, text: str, *sources: str) -> None:
    """Raises InvalidArguments if it cannot be written."""
    write_bytes(option, path, text.encode(), *sources)


def write_arrays(option: str, path: str, arrays: Mapping[str, Any], *sources: str) -> None:
    """As numpy.savez does, under exactly this path, and for any names.  Raises InvalidArguments."""
    import io  # here: pages need none of these
    import zipfile

    import numpy as np

    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as members:
        for name, array in arrays.items():
            with members.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array))
    write_bytes(option, path, data.getbuffer(), *sources)


def write_bytes(option: str, path: str, data: bytes | memoryview, *sources: str) -> None:
    check_output(option, path, *sources)
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise InvalidArguments(f"{option}={path} cannot be written: {error.strerror}") from None
