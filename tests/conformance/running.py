"""A case of the bench in memory where nothing but its tensors may be read or written, by any plan that takes it.

Whatever lies between elements is poison, and stays it; padding of what is read is 0, and of what is written becomes 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, Array
from asmdnn.bench.judge import judge
from asmdnn.bench.values import decoded, joined
from asmdnn.planning.phase import Int64
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.description import Description
from tests.primitives.guarded import guarded_tensors
from tests.primitives.raw import bits_of
from tests.support.plans import emulate_plan

POISON = {1: 0x99, 2: 0x7FCD, 4: 0x7FC0DEAD}  # NaN of every type that has one, by the size of elements
UNREAD = ("indices",)  # of maxima: nobody asks where those of padding were
Memories = dict[str, dnn.Memory]


@dataclass(frozen=True)
class Conforming:
    """A case with its data and its answer, which are made once.  kind: which of the kinds of data that are checked."""

    case: AnyCase
    kind: int = 0

    @cached_property
    def work(self) -> Any:
        return self.case.driver.work(self.case)

    @cached_property
    def data(self) -> Any:
        return self.work.data(self.work.exactness[self.kind])

    @cached_property
    def variants(self) -> "list[Conforming]":
        """The same on every kind of data: integers have ties, and numbers that change nothing."""
        return [self, *(replace(self, kind=kind) for kind in range(1, len(self.work.exactness)))]

    @cached_property
    def answer(self) -> Any:
        return self.work.answer(self.data)

    def planned(self, isa: str, threads: int = 1, **modes: Any) -> dnn.PrimitiveDesc:
        """On a machine that is the same everywhere.  modes: of the attributes."""
        desc, attr = self.work.describe()
        engine = dnn.Engine(isa=isa, threads=threads, l2_bytes=1 << 16, machine="zen3")  # type: ignore[arg-type]
        return dnn.primitive_desc(desc, with_modes(attr, **modes), engine)

    def memories(self, pd: dnn.PrimitiveDesc) -> Memories:
        """The arguments."""
        found = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
        for name, memory in found.items():
            self.fill(pd, name, memory)
        return found

    def fill(self, pd: dnn.PrimitiveDesc, name: str, memory: dnn.Memory) -> None:
        """An argument; what is only written is all poison."""
        is_read = name not in pd.plan.outputs or (name == "dst" and pd.attr.reads_dst())
        fill(memory, self.data.arrays.get(name), padding=0 if is_read else None)

    def check(self, pd: dnn.PrimitiveDesc, memories: Mapping[str, dnn.Memory]) -> list[bytes]:
        """Raise AssertionError unless results are right; the bytes of all of them."""
        made = {name: memories[name] for name in pd.plan.outputs}
        compared = [memory for name, memory in made.items() if name not in self.work.internal]
        for memory in (memory for name, memory in made.items() if name not in (*UNREAD, *self.work.internal)):
            assert_tidy(memory)
        found = joined([decoded(memory.numpy(), memory.desc.dtype) for memory in compared])
        reason = judge(found, self.answer, self.data.exact).reason
        assert not reason, f"{pd.implementation}: {reason}"
        return [memory.array.tobytes() for memory in made.values()]

    def run(self, pd: dnn.PrimitiveDesc, **more: dnn.Memory) -> list[bytes]:
        memories = self.memories(pd)
        dnn.Primitive(pd).execute(**memories, **more)
        return self.check(pd, memories)

    def run_guarded(self, pd: dnn.PrimitiveDesc, at_end: bool) -> None:
        """Every tensor ends, or starts, at an unmapped page, and inputs cannot be written."""
        memories = guarded_tensors(pd.plan, at_end, lambda name, memory: self.fill(pd, name, memory))
        dnn.Primitive(pd).execute(**memories)
        self.check(pd, memories)

    def run_emulated(self, pd: dnn.PrimitiveDesc) -> None:
        memories = self.memories(pd)
        emulate_plan(pd.plan, memories)
        self.check(pd, memories)


def with_modes(attr: dnn.Attr, **modes: Any) -> dnn.Attr:
    given = {field.name: getattr(attr, field.name) for field in fields(attr) if field.init}
    return dnn.Attr(**{name: dict(x) if name in ("scales", "zero_points") else x for name, x in given.items()} | modes)


def fill(memory: dnn.Memory, values: Array | None, padding: int | None) -> None:
    """Elements and padding; what is None, and gaps, are poison."""
    bits = bits_of(memory)
    if not memory.desc.holds_elements and values is not None:
        bits[:] = bits_of(dnn.Memory.from_numpy(np.ascontiguousarray(values).view(bits.dtype), memory.desc))
        return
    bits[:] = POISON[bits.itemsize]
    if padding is not None:
        bits[memory.desc.offsets(with_padding=True)] = padding
    if values is not None:
        bits[memory.desc.offsets()] = np.ascontiguousarray(values).view(bits.dtype)


def assert_tidy(memory: dnn.Memory) -> None:
    """Padding is zero, of either sign, and gaps are what they were."""
    bits, desc, values = bits_of(memory), memory.desc, memory.array.copy()
    values[desc.offsets()] = 0
    everything = desc.offsets(with_padding=True)
    assert not values[everything].any(), f"padding of {desc} is not zero"
    expected = np.full_like(bits, POISON[bits.itemsize])
    expected[everything] = bits[everything]
    assert np.array_equal(bits, expected), f"a gap of {desc} was written"


def check_shares(plan: Plan, parts: int, shares: Sequence[Int64]) -> None:
    """Every record is in one share, groups are whole, and phases that continue one another are cut alike."""
    for phase, bounds, before in zip(plan.phases, shares, (None, *shares), strict=False):
        assert len(bounds) == parts + 1 and (bounds[0], bounds[-1]) == (0, phase.count), "a share is too long or short"
        assert (np.diff(bounds) >= 0).all(), "shares overlap"
        assert not phase.alone or (bounds[1:] == phase.count).all(), "several threads run what one has to"
        assert not phase.continues or np.array_equal(bounds, before), "a thread does not go on with what it began"
        if phase.groups is not None:
            starts = np.append(phase.groups[:-1], len(phase.records))
            assert np.isin(bounds % len(phase.records), starts % len(phase.records)).all(), "a group is cut"


def part_of(desc: dnn.MemoryDesc) -> dnn.MemoryDesc:
    """The same as a part of a larger tensor, which leaves gaps."""
    whole = dnn.MemoryDesc(tuple(n + 2 for n in desc.dims), desc.dtype, desc.tag)
    return whole.submemory(desc.dims, (1,) * desc.ndims)


def of_parts(desc: Description) -> Description:
    """The same of parts of larger tensors, where their layouts are plain; a bias has to be dense."""
    plain = {
        field.name: part_of(tensor)
        for field in fields(desc)
        if isinstance(tensor := getattr(desc, field.name), dnn.MemoryDesc)
        and field.name != "bias" and not tensor.is_any and not tensor.inner_blocks and tensor.tag
    }  # fmt: skip
    return replace(desc, **plain)


@contextmanager
def naming(case: AnyCase) -> Iterator[None]:
    """Say of what case an error is."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
