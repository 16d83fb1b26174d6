"""jitdump: the code of live kernels with names and times, from which `perf inject --jit` makes ELF files.

Every record of a kernel follows one with its unwind information, so that `perf record --call-graph dwarf` gets through.
Source: Linux, tools/perf/Documentation/jitdump-specification.txt; the layout of unwind data, tools/perf/util/genelf.c.
"""

import os
import struct
import threading
import time
from typing import Final

from asmdnn.jit.executable import map_first_page
from asmdnn.jit.unwind import eh_frame

_HEADER: Final = struct.Struct("<IIIIIIQQ")
_RECORD: Final = struct.Struct("<IIQ")
_CODE_LOAD: Final = struct.Struct("<IIQQQQ")
_UNWINDING: Final = struct.Struct("<QQQ")
_MAGIC, _VERSION, _X86_64 = 0x4A695444, 1, 62
_LOAD, _UNWINDING_INFO = 0, 4
_ALIGNMENT_BYTES = 8
_HDR_BYTES = 20


class Jitdump:
    """The file jit-PID.dump in `directory`, mapped executable once, which is how perf notices it.  Raises OSError."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, f"jit-{os.getpid()}.dump")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(self.path, flags, 0o600), "r+b", buffering=0)
        self._file.write(_HEADER.pack(_MAGIC, _VERSION, _HEADER.size, _X86_64, 0, os.getpid(), time.monotonic_ns(), 0))
        map_first_page(self._file.fileno())
        self._index = 0

    def write(self, name: str, address: int, code: bytes) -> None:
        """One kernel, unwind information first: perf attaches it to the code that follows."""
        now = time.monotonic_ns()
        data = unwind_data(code)
        unwinding = _UNWINDING.pack(len(data), _HDR_BYTES, len(data)) + data
        unwinding += bytes(-len(unwinding) % _ALIGNMENT_BYTES)
        label = name.encode() + b"\0"
        size = _RECORD.size + _CODE_LOAD.size + len(label) + len(code)
        load = _CODE_LOAD.pack(os.getpid(), threading.get_native_id(), address, address, len(code), self._index)
        self._file.write(
            _RECORD.pack(_UNWINDING_INFO, _RECORD.size + len(unwinding), now) + unwinding
            + _RECORD.pack(_LOAD, size, now) + load + label + code
        )  # fmt: skip
        self._index += 1


def unwind_data(code: bytes) -> bytes:
    """.eh_frame and .eh_frame_hdr as they lie after the code, at the next multiple of 8.

    perf looks for them at this address, so they have to be mapped there: see `tail`.
    """
    frame = eh_frame(code, 0, len(code) + len(_padding(code)))
    return frame + _eh_frame_header(frame)


def tail(code: bytes) -> bytes:
    """What to map after a kernel."""
    return _padding(code) + unwind_data(code)


def _padding(code: bytes) -> bytes:
    return bytes(-len(code) % _ALIGNMENT_BYTES)


def _eh_frame_header(frame: bytes) -> bytes:
    """.eh_frame_hdr right after .eh_frame: where it starts, and a search table of one entry."""
    cie_bytes = int.from_bytes(frame[:4], "little") + 4
    # version, then the encodings of: pointer to .eh_frame (pcrel sdata4), count (udata4), table (datarel sdata4)
    head = bytes((1, 0x1B, 0x03, 0x3B)) + (-len(frame) - 4).to_bytes(4, "little", signed=True)
    distance = int.from_bytes(frame[cie_bytes + 8 : cie_bytes + 12], "little", signed=True)
    to_code = distance + cie_bytes + 8 - len(frame)
    table = [to_code, cie_bytes - len(frame)]
    return head + (1).to_bytes(4, "little") + b"".join(n.to_bytes(4, "little", signed=True) for n in table)
