"""What each instruction of an emulated call did: registers, flags and memory that it changed, memory that it read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from asmdnn.asm.emulation import EmulatedCall, emulate
from asmdnn.asm.footprint import Reaches
from asmdnn.asm.machine import MachineCode
from asmdnn.asm.prototype import Prototype
from asmdnn.asm.trace.step import Spans, TraceStep
from asmdnn.emulator import Emulator
from asmdnn.files import replace_file
from asmdnn.isa.code import Line
from asmdnn.isa.operands import register
from asmdnn.records import dataclass, replace

FLAGS: Final = ("cf", "zf", "sf", "of", "pf")


@dataclass(frozen=True)
class Trace:
    """A call, step by step.  entry: registers that hold arguments; pointers: by array the one that points to it;
    memory: the bytes of each array before the call, and its elements' type in numpy's words."""

    prototype: str
    isa: str
    call: EmulatedCall
    listing: tuple[Line, ...]
    steps: tuple[TraceStep, ...]
    entry: Mapping[str, bytes]
    pointers: Mapping[str, str]
    memory: Mapping[str, tuple[bytes, str]]

    def page(self, path: str | Path) -> None:
        """Writes a page of HTML that plays the steps, and needs no other file.  Raises OSError."""
        replace_file(Path(path), self._html().encode())

    def _html(self) -> str:
        from asmdnn.asm.trace.page import data_of, page_of

        data = data_of(self.listing, self.steps, self.entry, self.memory) | {"pointers": dict(self.pointers)}
        facts = f"{self.isa} · {len(self.steps)} steps · result {self.call.result}"
        return page_of(self.prototype, facts, data | {"vector": "zmm" if "avx512" in self.isa else "ymm"})

    def __str__(self) -> str:
        return f"{self.prototype} at {self.isa}: {len(self.steps)} steps, result {self.call.result}"

    def _repr_html_(self) -> str:
        """As notebooks show it: the page in a frame."""
        from html import escape

        return f'<iframe srcdoc="{escape(self._html())}" width="100%" height="720" style="border:0"></iframe>'


class _Watch:
    """Compares the state before and after each instruction."""

    def __init__(self, listing: Sequence[Line], vector_bytes: int) -> None:
        self._places = {line.offset: i for i, line in enumerate(listing)}
        self._bytes = vector_bytes
        self.steps: list[TraceStep] = []
        self.entry: Mapping[str, bytes] = {}
        self.pointers: Mapping[str, str] = {}
        self.memory: dict[str, bytes] = {}

    def begin(self, emulator: Emulator, passed: Mapping[str, bytes], pointers: Mapping[str, str]) -> None:
        self.entry, self.pointers = passed, pointers
        self._emulator = emulator
        self.memory = {region.name: region.array.tobytes() for region in emulator.regions}
        self._all = {name: np.zeros((2, len(data)), bool) for name, data in self.memory.items()}

    def before(self, cpu: Any) -> None:
        self._gpr, self._k, self._vectors = list(cpu.gpr), list(cpu.k), cpu.vectors[:, : self._bytes].copy()
        self._flags = [getattr(cpu, flag) for flag in FLAGS]
        for touched in self._footprints.values():
            touched.read[:], touched.written[:] = False, False

    def after(self, offset: int, cpu: Any) -> None:
        changed: dict[str, bytes] = {}
        for kind, old, new in (("r64", self._gpr, cpu.gpr), ("k", self._k, cpu.k)):
            changed |= {
                str(register(kind, i)): int(value).to_bytes(8, "little")
                for i, value in enumerate(new)
                if value != old[i]
            }
        now = cpu.vectors[:, : self._bytes]
        for i in np.flatnonzero((now != self._vectors).any(axis=1)).tolist():
            changed[f"v{i}"] = now[i].tobytes()
        for flag, before in zip(FLAGS, self._flags, strict=True):
            value = getattr(cpu, flag)
            if value is not before:
                changed[flag] = b"" if value is None else bytes([value])
        for name, seen in self._all.items():
            seen |= np.stack((self._footprints[name].read, self._footprints[name].written))
        read = {name: _spans(touched.read) for name, touched in self._footprints.items()}
        written = {name: _spans(touched.written) for name, touched in self._footprints.items()}
        arrays = {region.name: region.array for region in self._emulator.regions}
        stored = {
            name: tuple((begin, arrays[name][begin:end].tobytes()) for begin, end in spans)
            for name, spans in written.items()
            if name in arrays and spans
        }
        self.steps.append(TraceStep(self._places[offset], changed, _some(read), _some(written), stored))

    def touched(self) -> dict[str, tuple[int, int]]:
        """By array, how many bytes were read and written: the emulator's own count starts anew at each step."""
        return {name: (int(read.sum()), int(written.sum())) for name, (read, written) in self._all.items()}

    @property
    def _footprints(self) -> Mapping[str, Any]:
        return self._emulator.footprints or {}


def _spans(touched: Any) -> tuple[tuple[int, int], ...]:
    """Where a run of bytes starts and ends."""
    if not touched.any():
        return ()
    edges = np.flatnonzero(np.diff(touched.astype(np.int8), prepend=0, append=0))
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _some(spans: Spans) -> Spans:
    return {name: found for name, found in spans.items() if found}


def record(
    prototype: Prototype, machine: MachineCode, extents: Reaches, given: Sequence[Any], most_steps: int
) -> Trace:
    """Emulates the call and notes each step; raises what `emulate` raises."""
    listing = machine.code.listing
    assert listing is not None
    watch = _Watch(listing, machine.level.isa.vector_bytes)
    call = emulate(prototype, machine, extents, given, most_steps, watch)
    types = {a.name: _element(a.type.item) for a in prototype.arguments if a.type.is_pointer}
    memory = {name: (data, types[name]) for name, data in watch.memory.items()}
    call = replace(call, touched=watch.touched())
    return Trace(
        prototype=str(prototype),
        isa=machine.level.name,
        call=call,
        listing=listing,
        steps=tuple(watch.steps),
        entry=watch.entry,
        pointers=watch.pointers,
        memory=memory,
    )


def _element(item: str) -> str:
    from asmdnn.asm.converters import dtype_of

    return str((dtype_of(item) or np.dtype(np.uint8)).str[1:])
