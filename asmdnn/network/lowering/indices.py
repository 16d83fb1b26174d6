"""Integers of 32 bits and more as kernels read them: indices of look-ups, and what becomes numbers."""

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.network.descriptors import STORED, input_desc, row_major, words_desc
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array
from asmdnn.network.joining.place import Place
from asmdnn.network.limits import Limit, around
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.gather.description import Gather
from asmdnn.types import f32, s32

INT32 = around(1 << 31)  # the limit of integers that choose nothing


def indices_of(steps: Steps, name: str, limit: int, axis: int) -> Place:
    """Where integers lie that choose from `limit` elements: an input, or what numpy makes of one, which is checked
    before every run, or a constant.  Raises Refused."""
    value = steps.value(name)
    if value.data is not None:
        wide = value.data.astype(np.int64)
        numbers = np.where(wide < 0, wide + limit, wide)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < limit:
            raise Refused(f"its indices {name} are not all from {-limit} to {limit - 1}")
        return constant_indices(steps, f"{name} from {limit}", numbers)
    if name in steps.integers.made:
        return indices_made(steps, name, around(limit, axis))
    if name not in steps.integers.given or value.dtype.kind != "i":
        raise Refused(f"its indices {name} are {value.dtype.name} that a kernel makes")
    return limited(steps, name, around(limit, axis))


def indices_made(steps: Steps, name: str, limit: Limit) -> Place:
    """Indices that kernels make as f32.  Those that may be out of range are looked at after a run."""
    least, most = steps.integers.bounds[name]
    if least < limit.least or most >= limit.end:
        steps.integers.look_at(name, limit)
    source = steps.integers.made[name]
    dims = source.desc.dims
    target = Place(f"{name} as indices", MemoryDesc(dims, s32, LETTERS[: len(dims)]))
    if target.buffer not in steps.memory.sizes:
        steps.reorder(source, Place(steps.memory.add(*target), target.desc), name)
    return target


def constant_indices(steps: Steps, name: str, numbers: Array) -> Place:
    """Of any dims."""
    dims = numbers.shape or (1,)
    return steps.memory.add_weight(name, numbers, MemoryDesc(dims, s32, LETTERS[: len(dims)]))


def integers_of(steps: Steps, name: str, limit: Limit = INT32) -> Place:
    """Where integers lie that are to be numbers within a limit: an input, or what numpy makes of one, which
    is checked before every run.  Raises Refused."""
    value = steps.value(name)
    if name not in steps.integers.given or value.dtype.kind != "i":
        raise Refused(f"{name} is {value.dtype.name} that a kernel makes, only f32 is computed with")
    if value.dtype.itemsize < s32.size_bytes:
        raise Refused(f"{name} is {value.dtype.name}, only int32 and int64 are read")
    return limited(steps, name, limit)


def number_of(steps: Steps, name: str, limit: Limit) -> Place:
    """Where integers lie that callers pass as f32: bytes, words, and unsigned ones up to a limit that is checked before
    every run.  Raises Refused."""
    value = steps.value(name)
    if value.dtype in STORED:
        return steps.as_type(name, f32)
    if name not in steps.integers.given:
        raise Refused(f"{name} is {value.dtype.name} that a kernel makes, only f32 is computed with")
    return limited(steps, name, limit) if value.dtype.itemsize >= s32.size_bytes else given_as(steps, name)


def number_given(steps: Steps, name: str) -> Place:
    """Where numbers lie that calls convert to f32: an input, or what numpy makes of one.  Raises Refused."""
    if name not in steps.integers.given:
        raise Refused(f"{name} is {steps.value(name).dtype.name} that a kernel makes, only f32 is computed with")
    return given_as(steps, name)


def limited(steps: Steps, name: str, limit: Limit) -> Place:
    """An input of integers, of which the least limit holds."""
    steps.integers.limit(name, limit)
    return given_as(steps, name)


def given_as(steps: Steps, name: str) -> Place:
    return Place(name, input_desc(steps.value(name)))


def integer_words(steps: Steps, name: str) -> Place:
    """Where all words of an integer lie that callers pass.  Raises Refused."""
    if name not in steps.integers.given:
        raise Refused(f"{name} is {steps.value(name).dtype.name} that a kernel makes, only those of callers are whole")
    steps.integers.whole.add(name)
    return Place(name, words_desc(steps.value(name)))


def gather_rows(steps: Steps, group: Group, source: Place, numbers: Place, axis: int) -> None:
    """The look-up itself, as a primitive."""
    dims = source.desc.dims
    made = row_major((*dims[:axis], *numbers.desc.dims, *dims[axis + 1 :]), source.desc.dtype)
    desc = Gather(source.desc, numbers.desc, made, axis)
    steps.add(group.nodes, group.label, desc, {"src": source, "indices": numbers}, {"dst": group.result})
