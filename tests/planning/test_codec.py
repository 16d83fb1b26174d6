"""Plans as bytes: what comes back is the plan, and what cannot be written is refused."""

import dataclasses
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import NotPackable
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.planning.phase import FLAGS
from asmdnn.planning.plan import Plan

ZLIB_HEADER_BYTES = 2
ANY = {"src": (2, 20, 9, 7), "weights": (17, 20, 3, 3), "dst": (2, 17, 9, 7)}


def conv_plan(isa: str, tag: str = "any", relu: float = 0.5) -> Plan:
    descs = {name: dnn.MemoryDesc(dims, dnn.f32, "any" if name == "weights" else tag) for name, dims in ANY.items()}
    desc = dnn.ConvolutionForward(**descs, padding_l=(1, 1), padding_r=(1, 1))
    attr = dnn.Attr([dnn.Sum(-0.0), dnn.Eltwise("relu", relu)])
    return dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1)).plan


def plans(isa: str) -> list[Plan]:
    engine = dnn.Engine(isa=isa, threads=1)
    view = dnn.MemoryDesc((3, 5), dnn.f32, strides=(64, 2), offset0=3)
    u8 = dnn.MemoryDesc((2, 12, 5, 5), dnn.u8, "nhwc")
    s8 = dnn.MemoryDesc((3, 5), dnn.s8, "AB4b16a4b")
    others = (
        dnn.Reorder(view, dnn.MemoryDesc((3, 5), dnn.f32, "Ab8a")),
        dnn.Reorder(view, s8, compensation=1),
        dnn.Shuffle(u8, u8, 1, 4),
    )
    return [conv_plan(isa), conv_plan(isa, "nchw"), *(dnn.primitive_desc(d, engine=engine).plan for d in others)]


def test_what_comes_back(planned_isa: str) -> None:
    for plan in plans(planned_isa):
        copy, extra = decode_plan(encode_plan(plan, [["direct", "no"]]))
        assert repr(copy.specs) == repr(plan.specs)  # -0.0, too
        assert copy.specs == plan.specs
        assert copy.tensors == plan.tensors
        assert {k: v.tolist() for k, v in copy.constants.items()} == {k: v.tolist() for k, v in plan.constants.items()}
        for phase, original in zip(copy.phases, plan.phases, strict=True):
            for name in ("kernels", "arguments", "repeats", *FLAGS):
                assert getattr(phase, name) == getattr(original, name)
            for name in ("records", "cycles"):
                array, expected = getattr(phase, name), getattr(original, name)
                assert array.dtype == expected.dtype
                assert np.array_equal(array, expected)
                assert array.flags.aligned
                assert not array.flags.writeable
        assert (copy.scratch_bytes, copy.outputs, copy.implementation, copy.parts(2), copy.cycles) == (
            plan.scratch_bytes, plan.outputs, plan.implementation, plan.parts(2), plan.cycles
        )  # fmt: skip
        assert extra == [["direct", "no"]]
        copy.check()


@dataclasses.dataclass(frozen=True)
class Foreign:
    """A spec of another package."""

    isa: str = "avx2"
    name: str = "foreign"


@pytest.mark.parametrize("spec", [Foreign(), frozenset({1}), (1, b"2")])
def test_a_spec_without_a_word_for_it(spec: object) -> None:
    plan = conv_plan("avx2")
    phase = dataclasses.replace(plan.phases[0], kernels=(spec,))  # type: ignore[arg-type]
    with pytest.raises(NotPackable):
        encode_plan(dataclasses.replace(plan, phases=(phase,)))


@pytest.mark.parametrize("name", ["os:system", "asmdnn.generators.dot.conv:load_bias", "asmdnn.no:Spec", "asmdnn:ops"])
def test_only_values_of_this_package_are_built(name: str) -> None:
    raw = zlib.decompress(encode_plan(conv_plan("avx2")))
    length = int.from_bytes(raw[:8], "little")
    text = json.loads(raw[8 : 8 + length])
    text["specs"][0]["class"] = name
    head = json.dumps(text).encode()
    head += b" " * (-len(head) % 8)
    data = zlib.compress(len(head).to_bytes(8, "little") + head + raw[8 + length + -length % 8 :])
    with pytest.raises(dnn.InvalidArguments, match="does not know"):
        decode_plan(data)


def altered(change: Callable[[dict[str, Any], list[Any]], None]) -> bytes:
    """A plan's bytes after `change` of its text and its arrays; the checksum of a pack would hold."""
    raw = zlib.decompress(encode_plan(conv_plan("avx2")))
    length = int.from_bytes(raw[:8], "little")
    text = json.loads(raw[8 : 8 + length])
    at, arrays = 8 + length + -length % 8, []
    for phase in text["phases"]:
        for name, dtype in (("records", "<i8"), ("cycles", "<i4")):
            array = (
                np.frombuffer(raw, dtype, int(np.prod(phase[name]["shape"])), at).reshape(phase[name]["shape"]).copy()
            )
            arrays.append(array)
            at += array.nbytes + -array.nbytes % 8
    change(text, arrays)
    head = json.dumps(text).encode()
    head += b" " * (-len(head) % 8)
    body = b"".join(array.tobytes() + bytes(-array.nbytes % 8) for array in arrays)
    return zlib.compress(len(head).to_bytes(8, "little") + head + body + raw[at:])


def at(path: str, value: object) -> Callable[[dict[str, Any], list[Any]], None]:
    """Put `value` at a path of the text."""

    def change(text: Any, arrays: list[Any]) -> None:
        *way, last = (int(word) if word.isdigit() else word for word in path.split("."))
        for word in way:
            text = text[word]
        text[last] = value

    return change


def in_array(number: int, index: tuple[int, ...], value: int) -> Callable[[dict[str, Any], list[Any]], None]:
    def change(text: dict[str, Any], arrays: list[Any]) -> None:
        arrays[number][index] = value

    return change


def test_what_is_not_altered_is_read() -> None:
    assert decode_plan(altered(lambda text, arrays: None))[0].implementation == conv_plan("avx2").implementation


@pytest.mark.parametrize(
    "change",
    [
        in_array(0, (0, 0), 10**6), in_array(0, (0, 0), -1), in_array(0, (0, 1), 2**62), in_array(0, (-1, 2), -(2**40)),
        in_array(1, (0,), -5), at("phases.0.records.shape", [3]), at("phases.0.records.shape", [-1, 4]),
        at("phases.0.records.shape", [2**40, 2**40]), at("phases.0.records.shape", "x"),
        at("phases.0.records.dtype", "<f8"), at("phases.0.records.dtype", "O"), at("phases.0.cycles.dtype", "<i8"),
        at("phases.0.cycles.shape", [1]), at("phases.0.arguments", ["src"]), at("phases.0.arguments", 5),
        at("phases.0.continues", True), at("phases.0.continues", "no"), at("phases", []), at("specs", []),
        at("specs", [3]), at("specs.0", None), at("specs.0.fields", {}),
        at("specs.0.class", "asmdnn.memory.storage:Memory"),
        at("tensors.src", 3), at("tensors.src.desc.dims", [2**40] * 4), at("tensors", []), at("outputs", ["nothing"]),
        at("outputs", []), at("scratch_bytes", {"x": -1}), at("scratch_bytes", {"x": 2**60}), at("implementation", 3),
        at("constants", {"taps": {"dtype": "<i8", "shape": [2**50]}}),
    ],
)  # fmt: skip
def test_nonsense_after_a_valid_checksum(change: Callable[[dict[str, Any], list[Any]], None]) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"makes no sense .*make it again"):
        decode_plan(altered(change))


@pytest.mark.parametrize("data", [b"", b"x", zlib.compress(b""), zlib.compress(bytes(8)), zlib.compress(b"\xff" * 99)])
def test_bytes_that_are_no_plan(data: bytes) -> None:
    with pytest.raises(dnn.InvalidArguments, match="makes no sense"):
        decode_plan(data)


def test_a_plan_that_inflates_to_a_gigabyte_is_refused_in_bounded_memory() -> None:
    packer = zlib.compressobj()
    first = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = first + 63 * first[ZLIB_HEADER_BYTES:]  # after a full flush, the same input gives the same bytes
    script = f"""
import resource, sys, zlib
import asmdnn as dnn
from asmdnn.planning.codec import decode_plan
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {640 << 20},) * 2)
try:
    decode_plan(sys.stdin.buffer.read())
except dnn.InvalidArguments as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, timeout=60)
    assert b"more than 268435456 bytes" in done.stdout, done.stderr
