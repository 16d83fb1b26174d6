"""Plans as bytes and back, for kernel packs: JSON for the values, raw little-endian arrays after it, deflated.

    length of the JSON u64 | JSON, padded to 8 | arrays, each padded to 8

Specs are frozen dataclasses, named tuples, enumerations and plain values.  Decoding builds only classes of this
package's generators, whose modules do nothing when they are imported: some are, here, as few plans need them.  It
inflates no more than LARGEST_PLAN_BYTES; and what it returns has passed decoded.py.
"""

import json
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, NotPackable
from asmdnn.forking import importing
from asmdnn.generators.contract import KernelSpec
from asmdnn.jit.digests import spec_text
from asmdnn.memory import MemoryDesc
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.memory.split import SplitDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.decoded import Nonsense, check_decoded, require
from asmdnn.planning.phase import FLAGS, Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.types import DATA_TYPES, PACKED_TYPES

COMPRESSION = 6
LARGEST_PLAN_BYTES = 1 << 28  # inflated; a record has some 64 bytes
SPEC_PACKAGES = ("generators", "isa", "types")  # of the classes that specs consist of

_LENGTH = struct.Struct("<Q")
_ALIGNMENT_BYTES = 8


def encode_plan(plan: Plan, extra: Any = None) -> bytes:
    """`plan` as bytes, with any JSON value beside it.  Raises NotPackable unless decoding gives the same plan back."""
    arrays: list[npt.NDArray[Any]] = []

    def shelve(array: npt.NDArray[Any]) -> dict[str, Any]:
        arrays.append(np.ascontiguousarray(array))
        return {"dtype": array.dtype.str, "shape": list(array.shape)}

    text = {**plan_text(plan, shelve), "specs": [encoded(spec) for spec in plan.specs], "extra": extra}
    head = json.dumps(text).encode()
    parts = [_LENGTH.pack(len(head)), head, bytes(-len(head) % _ALIGNMENT_BYTES)]
    for array in arrays:
        parts += [array.tobytes(), bytes(-array.nbytes % _ALIGNMENT_BYTES)]
    raw = b"".join(parts)
    if len(raw) > LARGEST_PLAN_BYTES:
        raise NotPackable(f"the plan {plan.implementation} has {len(raw)} bytes, packs take {LARGEST_PLAN_BYTES}")
    data = zlib.compress(raw, COMPRESSION)
    try:
        copy, _ = decode_plan(data)
    except InvalidArguments as error:
        raise NotPackable(f"the plan {plan.implementation} cannot be packed: {error}") from None
    _compare(plan, copy)
    return data


def decode_plan(data: bytes | memoryview, source: str = "bytes") -> tuple[Plan, Any]:
    """The plan, its arrays read-only, and what was stored beside it.  For bytes whose checksum holds.

    Raises InvalidArguments, which names the source, for anything that is no plan.
    """
    try:
        plan, extra = _decode_plan(data)
        check_decoded(plan)
    except Exception as error:  # nonsense makes any constructor fail in any way
        what = str(error) if isinstance(error, Nonsense | NotPackable) else f"{type(error).__name__}: {error}"
        raise InvalidArguments(f"a plan in {source} makes no sense ({what}): make it again with asmdnn pack") from None
    return plan, extra


def _inflated(data: bytes | memoryview) -> bytes:
    inflater = zlib.decompressobj()
    raw = inflater.decompress(data, LARGEST_PLAN_BYTES)
    require(inflater.eof, f"it is cut off, or has more than {LARGEST_PLAN_BYTES} bytes")
    return raw


def _decode_plan(data: bytes | memoryview) -> tuple[Plan, Any]:
    raw = _inflated(data)
    (head_bytes,) = _LENGTH.unpack_from(raw)
    require(head_bytes <= len(raw), "its text is longer than the whole")
    text = json.loads(raw[_LENGTH.size : _LENGTH.size + head_bytes])
    at = _LENGTH.size + head_bytes + -head_bytes % _ALIGNMENT_BYTES

    def take(described: dict[str, Any]) -> npt.NDArray[Any]:
        nonlocal at
        dtype, shape = np.dtype(described["dtype"]), tuple(described["shape"])
        require(dtype in (np.int64, np.int32) and min(shape, default=0) >= 0, "an array is not of int64 or int32")
        array = np.frombuffer(raw, dtype, int(np.prod(shape, dtype=np.int64)), at).reshape(shape)
        at += array.nbytes + -array.nbytes % _ALIGNMENT_BYTES
        return array

    plan = plan_of(text, take, tuple(decoded(spec) for spec in text["specs"]))
    return plan, text["extra"]


def plan_text(plan: Plan, shelve: Callable[[npt.NDArray[Any]], Any]) -> dict[str, Any]:
    """A plan as JSON, its kernels as their numbers in `plan.specs`, its arrays as what `shelve` says of them."""
    number = {spec: i for i, spec in enumerate(plan.specs)}
    return {
        "implementation": plan.implementation,
        "phases": [
            {
                "kernels": [number[spec] for spec in phase.kernels],
                "arguments": phase.arguments,
                "records": shelve(phase.records),
                "cycles": shelve(phase.cycles),
                "groups": [] if phase.groups is None else [shelve(phase.groups)],
                "repeats": phase.repeats,
                **{name: getattr(phase, name) for name in FLAGS},
            }
            for phase in plan.phases
        ],
        "tensors": {name: encoded(desc) for name, desc in plan.tensors.items()},
        "constants": {name: shelve(array) for name, array in plan.constants.items()},
        "scratch_bytes": dict(plan.scratch_bytes),
        "outputs": plan.outputs,
        "in_place": plan.in_place,
        "per_part": plan.per_part,
    }


def plan_of(text: dict[str, Any], take: Callable[[Any], npt.NDArray[Any]], specs: Sequence[KernelSpec]) -> Plan:
    """The plan that `plan_text` described; `take` gives the array of what was said of it."""

    def phase(p: dict[str, Any]) -> Phase:
        require(all(0 <= k < len(specs) for k in p["kernels"]), "a phase has kernels that do not exist")
        return Phase(
            tuple(specs[k] for k in p["kernels"]),
            tuple(View(*view) for view in p["arguments"]),
            take(p["records"]),
            take(p["cycles"]),
            groups=take(p["groups"][0]) if p["groups"] else None,
            repeats=tuple(Repeat(times, tuple(strides)) for times, strides in p["repeats"]),
            **{name: p[name] for name in FLAGS},
        )

    return Plan(
        implementation=text["implementation"],
        phases=tuple(map(phase, text["phases"])),
        tensors={name: decoded(desc) for name, desc in text["tensors"].items()},
        constants={name: take(array) for name, array in text["constants"].items()},
        scratch_bytes=text["scratch_bytes"],
        outputs=tuple(text["outputs"]),
        in_place=tuple(map(tuple, text["in_place"])),
        per_part=tuple(text["per_part"]),
    )


def encoded(value: Any) -> Any:
    """A value as JSON; tuples are lists, everything with a class says which."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, MemoryDesc):
        return {"desc": _desc_fields(value)}
    if type(value) is tuple:
        return [encoded(item) for item in value]
    name, field_names = _class_words(value.__class__)
    if isinstance(value, Enum):
        return {"class": name, "value": encoded(value.value)}
    if field_names is None:
        raise NotPackable(f"a plan holds {value!r}, a {name}, which packs have no word for")
    return {"class": name, "fields": {field: encoded(getattr(value, field)) for field in field_names}}


@cache
def _class_words(cls: Any) -> tuple[str, tuple[str, ...] | None]:
    """The name of a class, and those of the fields that make a value of it; None where there are none."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    if is_dataclass(cls):
        return name, tuple(field.name for field in fields(cls) if field.init)
    return name, getattr(cls, "_fields", None)


def decoded(value: Any) -> Any:
    """The value that `encoded` made this of.  Raises NotPackable for classes that the process does not know."""
    if isinstance(value, list):
        return tuple(decoded(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "desc" in value:
        return _desc(value["desc"])
    cls = _class(value["class"])
    if "value" in value:
        return cls(decoded(value["value"]))
    return cls(**{name: decoded(item) for name, item in value["fields"].items()})


def _class(name: str) -> Any:
    module, _, qualname = name.partition(":")
    package, *rooms = module.split(".")
    ours = package == __name__.split(".")[0] and rooms[:1] and rooms[0] in SPEC_PACKAGES
    cls = getattr(_module(module), qualname, None) if ours else None
    if not isinstance(cls, type) or not (is_dataclass(cls) or issubclass(cls, Enum) or hasattr(cls, "_fields")):
        raise NotPackable(f"a plan holds a {name}, which this process does not know")
    return cls


def _module(name: str) -> ModuleType | None:
    """A module of this package that is imported, or one of its generators."""
    if name not in sys.modules and name.split(".")[1] == SPEC_PACKAGES[0]:
        with importing(), suppress(ImportError):
            return import_module(name)
    return sys.modules.get(name)


def _desc_fields(desc: MemoryDesc) -> dict[str, Any]:
    if isinstance(desc, WinogradDesc):
        return {
            "dims": desc.dims,
            "dtype": desc.dtype.name,
            "winograd": desc.m,
            "panel": desc.panel,
            "turned": desc.turned,
        }
    if isinstance(desc, KernelRowsDesc):
        return {"dims": desc.dims, "dtype": desc.dtype.name, "kernel_rows": desc.panel, "outputs": desc.outputs}
    if isinstance(desc, SummedDesc):
        return {"sums": _desc_fields(desc.storage), "mask": desc.mask}
    if isinstance(desc, SplitDesc):
        return {"split": _desc_fields(desc.storage), "depth": desc.depth}
    layout = {"tag": "any"} if desc.is_any else {"strides": desc.strides, "inner_blocks": desc.inner_blocks}
    return {"dims": desc.dims, "dtype": desc.dtype.name, "offset0": desc.offset0, **layout}


def _desc(text: dict[str, Any]) -> MemoryDesc:
    if "sums" in text:
        return SummedDesc(_desc(text["sums"]), text["mask"])
    if "split" in text:
        return SplitDesc(_desc(text["split"]), text["depth"])
    if "kernel_rows" in text:
        return KernelRowsDesc(text["dims"], DATA_TYPES[text["dtype"]], text["kernel_rows"], text["outputs"])
    if "winograd" in text:
        turned = text.get("turned", False)
        return WinogradDesc(text["dims"], DATA_TYPES[text["dtype"]], text["winograd"], text["panel"], turned)
    layout = {name: text[name] for name in ("tag", "strides", "inner_blocks") if name in text}
    return MemoryDesc(text["dims"], {**DATA_TYPES, **PACKED_TYPES}[text["dtype"]], offset0=text["offset0"], **layout)


def _compare(plan: Plan, copy: Plan) -> None:
    """Raise NotPackable unless `copy` is `plan`: kernels by the text of their specs, all else by value."""
    same = (
        [spec_text(spec) for spec in plan.specs] == [spec_text(spec) for spec in copy.specs]
        and _arrays(plan) == _arrays(copy)
        and list(map(_values, plan.phases)) == list(map(_values, copy.phases))
        and all(
            getattr(plan, f.name) == getattr(copy, f.name)
            for f in fields(plan)
            if f.name not in ("phases", "constants")
        )
    )
    if not same:
        raise NotPackable(f"the plan {plan.implementation} does not survive being written and read")


def _arrays(plan: Plan) -> Sequence[tuple[str, tuple[int, ...], bytes]]:
    arrays = [array for phase in plan.phases for array in (phase.records, phase.cycles, phase.groups)]
    arrays += [plan.constants[name] for name in sorted(plan.constants)]
    return [(array.dtype.str, array.shape, array.tobytes()) for array in arrays if array is not None]


def _values(phase: Phase) -> tuple[Any, ...]:
    """What a phase says beside its arrays."""
    kernels = [spec_text(spec) for spec in phase.kernels]
    return (kernels, phase.arguments, phase.repeats, *(getattr(phase, name) for name in FLAGS))
