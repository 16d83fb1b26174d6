"""Arrays by name in numpy's .npz, read without trust: nothing is unpickled, and no member is larger than wanted."""

import io
import zipfile
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.files import replace_file
from asmdnn.network.arrays import Array

ENDING, MOST_HEADER_BYTES = ".npy", 10_000


def write_npz(path: str | PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Raises InvalidArguments if the file cannot be written."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(name + ENDING, member.getvalue())
    try:
        replace_file(Path(fspath(path)), written.getvalue())
    except Exception as error:  # OSError, or whatever the caller's object does
        raise InvalidArguments(f"the state cannot be written to {shown(path)}: {error}") from None


def read_npz(path: str | PathLike[str], most_bytes: int) -> dict[str, Any]:
    """Arrays by name.  most_bytes: of the data of each.  Raises InvalidArguments."""
    try:
        with zipfile.ZipFile(Path(fspath(path))) as archive:
            large = [each.filename for each in archive.infolist() if each.file_size > most_bytes + MOST_HEADER_BYTES]
            if large:
                raise ValueError(f"{large[0]} is larger than any array of the step")
            return {
                each.filename.removesuffix(ENDING): np.lib.format.read_array(
                    io.BytesIO(archive.read(each)), allow_pickle=False
                )
                for each in archive.infolist()
            }
    except MemoryError:
        raise
    except Exception as error:  # of the file system, of the archive, of the decompressor, of numpy
        raise InvalidArguments(f"{shown(path)} is no file that a training step has saved: {error}") from None
