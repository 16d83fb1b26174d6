"""Arrays by name in files, read without trust: nothing is unpickled, and no array is larger than wanted."""

import io
import zipfile
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, reason_of, shown_path
from asmdnn.files import replace_file
from asmdnn.network.arrays import Array
from asmdnn.network.passing import is_half
from asmdnn.network.training.safetensors import MOST_TENSORS_HEADER_BYTES, tensors_bytes, tensors_in

ENDING, MOST_HEADER_BYTES = ".npy", 10_000
SAFETENSORS = ".safetensors"


def write_state(path: str | PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Raises InvalidArguments if the file cannot be written."""
    try:
        where = Path(fspath(path))
        replace_file(where, tensors_bytes(arrays) if where.suffix == SAFETENSORS else npz_bytes(arrays))
    except MemoryError:
        raise
    except Exception as error:  # OSError, or whatever the caller's object does
        raise InvalidArguments(f"the state cannot be written to {shown_path(path)}: {reason_of(error)}") from None


def read_state(path: str | PathLike[str], most_bytes: int, all_bytes: int) -> dict[str, Any]:
    """Arrays by name.  most_bytes: of the data of each; all_bytes: of all together.  Raises InvalidArguments."""
    try:
        where = Path(fspath(path))
        if where.suffix != SAFETENSORS:
            return npz_arrays(where, most_bytes)
        if where.stat().st_size > all_bytes + MOST_TENSORS_HEADER_BYTES:
            raise ValueError("it is larger than the step")
        return tensors_in(where.read_bytes())
    except MemoryError:
        raise
    except Exception as error:  # of the file system, of the archive, of the decompressor, of numpy
        said = f"{shown_path(path)} is no file that a training step has saved"
        raise InvalidArguments(f"{said}: {reason_of(error)}") from None


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(name + ENDING, member.getvalue())
    return written.getvalue()


def npz_arrays(path: Path, most_bytes: int) -> dict[str, Any]:
    """Raises what a damaged file leads to."""
    with zipfile.ZipFile(path) as archive:
        large = [each.filename for each in archive.infolist() if each.file_size > most_bytes + MOST_HEADER_BYTES]
        if large:
            raise ValueError(f"{large[0]} is larger than any array of the step")
        return {
            each.filename.removesuffix(ENDING): np.lib.format.read_array(
                io.BytesIO(archive.read(each)), allow_pickle=False
            )
            for each in archive.infolist()
        }


def of_bits(array: Any, dtype: np.dtype[Any]) -> Any:
    """What numpy's files have of a type that numpy lacks, as that type; others as they are."""
    is_void = isinstance(array, np.ndarray) and type(array.dtype) is np.dtypes.VoidDType
    return array.view(dtype) if is_void and is_half(dtype) and array.dtype.itemsize == dtype.itemsize else array
