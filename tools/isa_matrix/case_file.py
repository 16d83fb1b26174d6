"""Corpus kernels as cases that a C program can run: code, buffers, and what must be in them afterwards.

A file is cases one after another; numbers are int64.  A case: size and bytes of its name, size and bytes of the code,
slack (bytes between a buffer and the guard pages), the number of arguments.  An argument: present, writable, kind
(1: f32), size, pointer (from the first byte), then its bytes before the call, the bytes wanted after it, and for each
byte whether the call writes it.
"""

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.types import HALF_FLOATS, f32
from tests.generators.cases import case_of
from tests.generators.checks import run_of
from tests.generators.codes import code_of
from tests.support.arena import Buffer, Bytes, encode
from tests.support.octets import ExactBuffer

BYTES, F32 = 0, 1
MASKED_LOAD = "vmaskmov"
VECTOR_BYTES = 32


def write_cases(path: Path, specs: Iterable[KernelSpec], emulated: bool) -> int:
    """Write a case for each spec; how many of them have slack.

    Sums of integers are exact.  Of functions that round, and of halves, whose zeros have signs where the reference's
    may have others, the bits are wanted that the interpreter of asmdnn/emulator computes, which other tests hold to the
    reference.
    qemu's TCG reads the whole vector of a masked load and then applies the mask, so there such kernels get a vector of
    slack; a CPU does not touch what is masked.
    """
    count = 0
    with path.open("wb") as file:
        for spec in specs:
            is_slack = emulated and any(line.text.startswith(MASKED_LOAD) for line in code_of(spec).listing or ())
            file.write(case_bytes(spec, VECTOR_BYTES * is_slack))
            count += is_slack
    return count


def case_bytes(spec: KernelSpec, slack_bytes: int) -> bytes:
    name, code, case = spec.name.encode(), code_of(spec).data, case_of(spec)
    buffers = {argument: case.buffers[argument] for argument in spec.frame}
    head = words(len(name)) + name + words(len(code)) + code + words(slack_bytes, len(buffers))
    rounds = any(np.any(tolerance) for tolerance in case.tolerances.values())
    halves = any(isinstance(x, Buffer) and x.kind in HALF_FLOATS and x.written.any() for x in buffers.values())
    is_exact = not rounds and not halves
    after = {} if is_exact else run_of(spec).after
    return head + b"".join(argument_bytes(buffer, after.get(name)) for name, buffer in buffers.items())


def argument_bytes(buffer: Buffer | None, computed: Bytes | None) -> bytes:
    if buffer is None:
        return words(0, 0, 0, 0, 0)
    size = len(buffer.before)
    wanted = wanted_bytes(buffer) if computed is None else computed.tobytes()
    kind = BYTES if isinstance(buffer, ExactBuffer) or buffer.kind != f32 else F32
    head = words(1, int(buffer.written.any()), kind, size, buffer.pointer_bytes)
    return head + buffer.before.tobytes() + wanted + buffer.written.astype(np.uint8).tobytes()


def wanted_bytes(buffer: Buffer) -> bytes:
    """What must be where the call writes; elsewhere what was there."""
    if not buffer.written.any():
        return buffer.before.tobytes()
    if isinstance(buffer, ExactBuffer):
        return buffer.bytes_wanted.tobytes()
    return encode(buffer.wanted, buffer.kind).tobytes()


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)
