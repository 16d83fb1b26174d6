"""Plans as bytes: what comes back is the plan, and what cannot be written is refused."""

import dataclasses
import json
import zlib

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.codec import PHASE_FLAGS, NotPackable, decode_plan, encode_plan
from asmdnn.planning.plan import Plan

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
            for name in ("kernels", "arguments", "repeats", *PHASE_FLAGS):
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
    with pytest.raises(NotPackable, match="does not know"):
        decode_plan(data)
