"""What a C program passes to an exported network or primitive, and how it becomes what kernels read and write."""

from collections.abc import Container, Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from asmdnn.errors import Unimplemented
from asmdnn.memory import MemoryDesc
from asmdnn.network.calls.running import WEIGHTS, NativePart, Runnable, input_name, result_name
from asmdnn.network.limits import around
from asmdnn.network.passing import is_read, passed_type
from asmdnn.planning.plan import ALIGNMENT_BYTES, Plan
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.registry import kind_of
from asmdnn.records import dataclass
from asmdnn.types import DATA_TYPES, HALF_FLOATS

Data = npt.NDArray[np.generic]
BOOL = np.dtype(np.bool_)
ELEMENTS = {  # by the name that messages and headers have: type of C; the order is that of the runtime's enum
    "f32": "float", "f64": "double", "s8": "int8_t", "u8": "uint8_t", "s16": "int16_t", "u16": "uint16_t",
    "s32": "int32_t", "u32": "uint32_t", "s64": "int64_t", "u64": "uint64_t", "bool": "_Bool", "other": "void",
}  # fmt: skip
WORDLESS = [t for t in DATA_TYPES.values() if t.extension or t in HALF_FLOATS]  # types that C has not
BITS = {t.name: f"uint{t.size_bytes * 8}_t" for t in WORDLESS}  # as which it sees them
KINDS = {"f": "f", "i": "s", "u": "u"}  # numpy's letters of numbers


@dataclass(frozen=True)
class CTensor:
    """A pointer of the caller's.  element: a name of ELEMENTS or BITS; about: what a header says of it; in_place: the
    position of the output that may be the same memory, -1 if none."""

    name: str
    element: str
    elements: int
    size_bytes: int
    about: str
    is_output: bool
    in_place: int = -1


@dataclass(frozen=True)
class CBuffer:
    """A tensor of the plan.  tensor: the position of the caller's, or -1; room: where in the rooms after the scratch
    it is kept as f32, or -1; least, limit: integers are from
    the one to below the other, if that is not 0; ignored: what they may be besides."""

    name: str
    tensor: int
    room: int
    elements: int
    least: int
    limit: int
    ignored: int
    is_made: bool


@dataclass(frozen=True, eq=False)
class CResult:
    """An output that no kernel writes where it belongs: a buffer, an input, or data; the others are -1 or None."""

    output: int
    buffer: int = -1
    input: int = -1
    data: Data | None = None


@dataclass(frozen=True, eq=False)
class CInterface:
    """tensors: inputs, then outputs.  buffers: by the name of the plan's tensor."""

    tensors: tuple[CTensor, ...]
    buffers: Mapping[str, CBuffer]
    results: tuple[CResult, ...]
    rooms_bytes: int


def of_network(runnable: Runnable, part: NativePart, plan: Plan) -> CInterface:
    """Inputs and outputs as the network declares them.  Raises Unimplemented for types that C has not."""
    tensors = [tensor_of(name, *shown, False) for name, shown in runnable.inputs.items()]
    tensors += [tensor_of(name, *shown, True) for name, shown in runnable.outputs.items()]
    inputs = {name: i for i, name in enumerate(runnable.inputs)}
    outputs = {name: len(inputs) + i for i, name in enumerate(runnable.outputs)}
    direct = dict[str, int]()  # values that kernels write where the caller wants them
    for name, value in runnable.results.items():
        if isinstance(value, str) and value in part.ends.makes and is_written(part, value, runnable.outputs[name][1]):
            direct.setdefault(value, outputs[name])
    made = {result_name(value): value for value in part.ends.makes}
    names = made | {input_name(value): value for value in part.ends.reads}
    buffers, end = dict[str, CBuffer](), 0
    for tensor in plan.tensors:
        if tensor == WEIGHTS:
            continue
        name = names[tensor]
        at = direct.get(name, -1) if tensor in made else inputs[name]
        elements = prod(part.ends.makes[name][0]) if tensor in made else tensors[at].elements
        if at < 0 and part.ends.makes[name][1] != np.float32:
            raise Unimplemented(f"value {name} of bytes is no output, or several: have the model cast it to float32")
        is_kept = at < 0 or not (tensor in made or is_read(runnable.inputs[name][1]))
        limit = (part.ends.checked if tensor in made else part.ends.limits).get(name, around(0))
        room = end if is_kept else -1
        ends = {"least": limit.least, "limit": limit.end, "ignored": limit.least}
        ends |= {} if limit.ignored is None else {"ignored": limit.ignored}
        buffers[tensor] = CBuffer(name, at, room, elements, **ends, is_made=tensor in made)
        end += -(-4 * elements // ALIGNMENT_BYTES) * ALIGNMENT_BYTES * is_kept
    numbers = {buffer.name: i for i, buffer in enumerate(buffers.values()) if buffer.is_made}
    results = []
    for name, value in runnable.results.items():
        if not isinstance(value, str):
            results.append(CResult(outputs[name], data=np.ascontiguousarray(value, runnable.outputs[name][1])))
        elif value in numbers and direct.get(value) != outputs[name]:
            results.append(CResult(outputs[name], buffer=numbers[value]))
        elif value not in numbers:
            same = runnable.inputs[value][1] == runnable.outputs[name][1]
            if not same:
                raise Unimplemented(f"output {name} is input {value} as another type: have the model cast it")
            results.append(CResult(outputs[name], input=inputs[value]))
    return CInterface(tuple(tensors), buffers, tuple(results), end)


def is_written(part: NativePart, value: str, dtype: np.dtype[np.generic]) -> bool:
    """Whether kernels write a value in an output's type."""
    return part.ends.makes[value][1] == dtype


def tensor_of(name: str, dims: Sequence[int], dtype: np.dtype[np.generic], is_output: bool) -> CTensor:
    element = "bool" if dtype == BOOL else f"{KINDS.get(dtype.kind, '')}{8 * dtype.itemsize}"
    element = passed_type(dtype).name if dtype.itemsize == 2 and passed_type(dtype).name in BITS else element
    if element not in ELEMENTS and element not in BITS:
        what = "output" if is_output else "input"
        raise Unimplemented(f"{what} {name} is {dtype.name}, for which C has no type: cast it to float32 in the model")
    count = prod(dims)
    return CTensor(name, element, count, count * dtype.itemsize, f"{element}{list(dims)}", is_output)


def of_primitive(pd: PrimitiveDesc, bound: Container[str]) -> CInterface:
    """The tensors of its plan, in their formats, but those that are bound.

    Raises Unimplemented for what Python checks before every call.
    """
    plan, desc = pd.plan, pd.desc
    kind = kind_of(desc)
    limits = kind.limits(desc) if kind.limits is not None else {}
    for name in limits:
        if not plan.tensors[name].is_dense:
            raise Unimplemented(f"{name} are not dense, and C checks dense ones: give them a plain format")
    if kind.guard is not None and kind.limits is None:
        raise Unimplemented(f"{type(desc).__name__} is checked in Python before every call: export a network of it")
    names = sorted((name for name in plan.tensors if name not in bound), key=lambda name: name in plan.outputs)
    tensors = tuple(plain_tensor(name, plan, names) for name in names)
    buffers = dict[str, CBuffer]()
    for at, name in enumerate(names):
        limit = limits.get(name, 0)
        elements, is_made = tensors[at].elements, name in plan.outputs
        buffers[name] = CBuffer(name, at, -1, elements, least=-limit, limit=limit, ignored=-limit, is_made=is_made)
    return CInterface(tensors, buffers, (), 0)


def plain_tensor(name: str, plan: Plan, names: Sequence[str]) -> CTensor:
    desc: MemoryDesc = plan.tensors[name]
    shared = [out for given, out in plan.in_place if given == name]
    in_place = names.index(shared[0]) if shared else -1
    about = f"{desc}, {desc.size_bytes} bytes" + (f"; may be {shared[0]} itself" if shared else "")
    elements = desc.size_bytes // desc.dtype.size_bytes
    is_output = name in plan.outputs
    return CTensor(name, desc.dtype.name, elements, desc.size_bytes, about, is_output=is_output, in_place=in_place)
