"""Primitive descriptors and their queries, the implementation list, and the checks of execute and bind."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.core.implementation import reasons_of
from tests.primitives.conv_case import case_of, layout, proven
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import memories_of, run
from tests.primitives.tensors import assert_within, read

CASE = case_of("mb2ic17ih7oc33oh7kh3ph1 any any bias relu")
PLANAR = case_of("mb2ic17ih7oc33oh7kh3ph1 nchw nchw bias relu")
MAKES = ("execute", "bind")


# Queries


def test_queries_of_a_direct_convolution(planned_isa: str) -> None:
    pd = proven(CASE, planned_isa)
    lanes = {"avx2": 8, "avx512_core": 16}[planned_isa]
    assert pd.implementation == f"direct:{planned_isa}"
    assert pd.src_desc == dnn.MemoryDesc((2, 17, 7, 7), dnn.f32, f"nChw{lanes}c")
    assert pd.dst_desc == dnn.MemoryDesc((2, 33, 7, 7), dnn.f32, f"nChw{lanes}c")
    assert pd.bias_desc == dnn.MemoryDesc((33,), dnn.f32, "a")
    assert pd.weights_desc is not None
    assert pd.weights_desc.dims == (33, 17, 3, 3)
    assert not pd.weights_desc.is_any
    assert pd.scratchpad_desc == dnn.MemoryDesc((0,), dnn.u8, "a")
    assert pd.workspace_desc is None
    assert pd.engine.isa == planned_isa
    assert pd.desc == CASE.desc()
    assert pd.attr == CASE.attr()
    schedule = sum(phase.records.nbytes + phase.cycles.nbytes for phase in pd.plan.phases)
    assert pd.plan.nbytes == schedule + pd.plan.constants["taps"].nbytes
    assert pd.memory_consumption == 0
    assert f"direct:{planned_isa}" in repr(pd)


def test_queries_of_a_convolution_between_reorders(planned_isa: str) -> None:
    pd = proven(PLANAR, planned_isa)
    blocked = proven(CASE, planned_isa)
    assert pd.src_desc == PLANAR.desc().src
    assert pd.dst_desc == PLANAR.desc().dst
    assert pd.weights_desc == blocked.weights_desc
    assert pd.memory_consumption == blocked.src_desc.size_bytes + blocked.dst_desc.size_bytes
    assert pd.scratchpad_desc == dnn.MemoryDesc((0,), dnn.u8, "a")  # of the library's pool


def test_absent_tensors() -> None:
    pd = proven(case_of("mb1ic8ih4oc8oh4kh1ph0 any any - -"), "avx2")
    assert pd.bias_desc is None
    assert list(pd.plan.tensors) == ["src", "weights", "dst"]
    desc = dnn.MemoryDesc((4, 4), dnn.f32, "ab")
    assert dnn.primitive_desc(dnn.Reorder(desc, desc)).weights_desc is None


def test_explain(planned_isa: str) -> None:
    pd = proven(PLANAR, planned_isa)
    text = pd.explain()
    lines = text.splitlines()
    assert lines[0].startswith(f"reorder+direct:{planned_isa}  (convolution forward of src f32 2x17x7x7 nchw")
    assert any(line.startswith(f"  refused  direct:{planned_isa}: src") for line in lines)
    for name, desc in pd.plan.tensors.items():
        assert f"  {name:8} {desc}" in lines
    for name, size in pd.plan.scratch_bytes.items():
        assert f"  scratch  {name} {size} bytes" in lines
    assert sum(line.startswith("  phase ") for line in lines) == 3
    used = {spec.name for phase in pd.plan.phases for spec, _, _ in phase.uses()}
    assert all(f" x {name}" in text for name in used)


# The implementation list


def test_every_implementation_answers(planned_isa: str) -> None:
    first, second, *others = dnn.implementations(
        PLANAR.desc(), PLANAR.attr(), dnn.Engine(isa=planned_isa, machine="zen3")
    )
    assert isinstance(first, dnn.Refusal)
    assert first.implementation == f"direct:{planned_isa}"
    assert "17 channels apart, more than 16" in first.reason
    assert isinstance(second, dnn.PrimitiveDesc)
    second.plan.check()
    assert second.implementation == f"reorder+direct:{planned_isa}"
    assert [type(other) for other in others] == [dnn.Refusal] * 3
    assert proven(PLANAR, planned_isa).refusals == (first,)


def convolution(**formats: dnn.MemoryDesc) -> dnn.ConvolutionForward:
    desc = CASE.desc()
    return desc.with_formats(formats)


REFUSED: dict[str, tuple[Callable[[], dnn.ConvolutionForward], str]] = {
    "weights type": (
        lambda: convolution(weights=dnn.MemoryDesc((33, 17, 3, 3), dnn.s32, "oihw")),
        "does not multiply f32 by s32: it has f32 x f32/",
    ),
    "src type": (lambda: convolution(src=dnn.MemoryDesc((2, 17, 7, 7), dnn.s32, "any")), "not multiply s32 by"),
    "bias": (lambda: convolution(bias=dnn.MemoryDesc((33,), dnn.f32, strides=(2,))), "bias must be dense"),
    "dst overlaps": (
        lambda: convolution(dst=dnn.MemoryDesc((2, 33, 7, 7), dnn.f32, strides=(49 * 33, 1, 33, 33))),
        "elements of dst overlap",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_unimplemented_lists_every_implementation(planned_isa: str, what: str) -> None:
    make, reason = REFUSED[what]
    with pytest.raises(dnn.Unimplemented, match=reason) as error:
        dnn.primitive_desc(make(), engine=dnn.Engine(isa=planned_isa))
    for name in ("direct", "reorder+direct", "product", "pack+direct", "pack+reorder+direct"):
        assert re.search(rf" {re.escape(name)}[:,]", str(error.value))
    answers = dnn.implementations(make(), engine=dnn.Engine(isa=planned_isa))
    assert len(answers) >= 5 and {type(answer) for answer in answers} == {dnn.Refusal}


def test_an_implementation_is_named_once_with_all_that_it_says() -> None:
    """Several planners may make one, and each has reasons of its own."""
    said = [("direct", "a"), ("tiles", "c"), ("direct", "b"), ("packed", "c"), ("tiles", "c")]
    assert reasons_of([dnn.Refusal(f"{name}:avx2", reason) for name, reason in said]) == (
        "direct:avx2: a, and b; tiles, packed:avx2: c"
    )


def test_weights_in_the_format_of_the_plan_are_accepted(planned_isa: str) -> None:
    chosen = proven(CASE, planned_isa).weights_desc
    assert chosen is not None
    pd = dnn.primitive_desc(convolution(weights=chosen), CASE.attr(), dnn.Engine(isa=planned_isa))
    pd.plan.check()
    assert pd.weights_desc == chosen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("conv",), r"desc must be one of .*ConvolutionForward.*, not str"),
        ((CASE.desc(), "relu"), "attr must be an Attr, not str"),
        ((CASE.desc(), [dnn.Sum()]), "attr must be an Attr, not list"),
        ((CASE.desc(), dnn.Attr(), "cpu"), "engine must be an Engine, not str"),
    ],
    ids=["desc", "attr", "post-ops", "engine"],
)
def test_wrong_requests(arguments: Any, message: str) -> None:
    for function in (dnn.primitive_desc, dnn.implementations):
        with pytest.raises(dnn.InvalidArguments, match=message):
            function(*arguments)


def test_a_primitive_is_made_of_a_descriptor() -> None:
    with pytest.raises(dnn.InvalidArguments, match="pd must be a PrimitiveDesc, not ConvolutionForward"):
        dnn.Primitive(CASE.desc())  # type: ignore[arg-type]


# Execution


@pytest.fixture
def primitive(isa: str) -> dnn.Primitive:
    return dnn.Primitive(proven(CASE, isa))


@pytest.fixture
def memories(primitive: dnn.Primitive) -> dict[str, dnn.Memory]:
    return memories_of(primitive.pd, make_data(CASE, integers=True))


def test_bind_and_execute_agree(primitive: dnn.Primitive, memories: dict[str, dnn.Memory]) -> None:
    wanted = expected(CASE, make_data(CASE, integers=True))
    with dnn.Stream(primitive.pd.engine) as stream:
        primitive.execute(stream, **memories)
    assert_within(read(memories["dst"]), wanted, 0.0)
    call = primitive.bind(**memories)
    for _ in range(3):
        memories["dst"].array[:] = np.nan
        call()
        assert_within(read(memories["dst"]), wanted, 0.0)


def test_a_bound_call_sees_new_contents_and_keeps_its_memory(isa: str) -> None:
    data = make_data(CASE, integers=True)
    other = make_data(CASE, integers=True, seed=8)

    def bound() -> tuple[Callable[[], None], dnn.Memory, dnn.Memory]:
        primitive = dnn.Primitive(proven(CASE, isa))  # which nobody else holds
        memories = memories_of(primitive.pd, data)
        return primitive.bind(**memories), memories["src"], memories["dst"]

    call, src, dst = bound()
    src.array[src.desc.offsets()] = other.src
    call()
    assert_within(read(dst), expected(CASE, replace(data, src=other.src)), 0.0)


def test_a_call_of_the_pool_is_bound_anew(primitive: dnn.Primitive) -> None:
    for seed in (1, 2, 3):
        data = make_data(CASE, integers=True, seed=seed)
        assert_within(run(primitive, data), expected(CASE, data), 0.0)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", ["src", "weights", "bias", "dst"])
def test_a_missing_argument(primitive: dnn.Primitive, memories: dict[str, Any], name: str, make: str) -> None:
    del memories[name]
    with pytest.raises(dnn.InvalidArguments, match="arguments must be src, weights, bias, dst, not "):
        getattr(primitive, make)(**memories)


@pytest.mark.parametrize("make", MAKES)
def test_an_unknown_argument(primitive: dnn.Primitive, memories: dict[str, Any], make: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"arguments must be src, weights, bias, dst, not .*extra"):
        getattr(primitive, make)(**memories, extra=memories["src"])
    with pytest.raises(dnn.InvalidArguments, match="not none"):
        getattr(primitive, make)()


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", ["src", "weights", "bias", "dst"])
def test_what_is_no_memory(primitive: dnn.Primitive, memories: dict[str, Any], name: str, make: str) -> None:
    for wrong in (memories[name].array, None):
        with pytest.raises(dnn.InvalidArguments, match=f"{name} must be a Memory, not {type(wrong).__name__}"):
            getattr(primitive, make)(**{**memories, name: wrong})


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize(
    ("name", "desc"),
    [
        ("src", dnn.MemoryDesc((2, 17, 7, 7), dnn.f32, "nchw")),
        ("src", dnn.MemoryDesc((1, 17, 7, 7), dnn.f32, "nChw8c")),
        ("weights", dnn.MemoryDesc((33, 17, 3, 3), dnn.f32, "oihw")),
        ("bias", dnn.MemoryDesc((33,), dnn.s32, "a")),
        ("dst", layout((2, 33, 7, 7), "nChw8c+8")),
        ("dst", dnn.MemoryDesc((2, 34, 7, 7), dnn.f32, "nChw8c")),
    ],
    ids=str,
)
def test_another_descriptor(
    primitive: dnn.Primitive, memories: dict[str, Any], name: str, desc: dnn.MemoryDesc, make: str
) -> None:
    with pytest.raises(dnn.InvalidArguments, match=f"^{name} is f32|s32 .*, this primitive takes f32 .*: reorder it"):
        getattr(primitive, make)(**{**memories, name: dnn.Memory(desc)})


def test_an_equal_descriptor_of_other_words(primitive: dnn.Primitive, memories: dict[str, Any]) -> None:
    desc = memories["dst"].desc
    same = dnn.Memory(dnn.MemoryDesc(desc.dims, desc.dtype, desc.tag))
    assert same.desc is not desc
    primitive.execute(**{**memories, "dst": same})
    assert_within(read(same), expected(CASE, make_data(CASE, integers=True)), 0.0)


@pytest.mark.parametrize("make", MAKES)
def test_a_read_only_destination(primitive: dnn.Primitive, memories: dict[str, Any], make: str) -> None:
    storage = np.zeros(memories["dst"].array.size, np.float32)
    storage.flags.writeable = False
    before = storage.copy()
    with pytest.raises(dnn.InvalidArguments, match="dst is read-only"):
        getattr(primitive, make)(**{**memories, "dst": dnn.Memory(memories["dst"].desc, storage)})
    assert np.array_equal(storage, before)


def test_read_only_inputs_are_fine(primitive: dnn.Primitive, memories: dict[str, Any]) -> None:
    for name in ("src", "weights", "bias"):
        memories[name].array.flags.writeable = False
        frozen = dnn.Memory(memories[name].desc, memories[name].array, padding_is_zero=True)
        assert not frozen.writable
        memories[name] = frozen
    primitive.execute(**memories)
    assert_within(read(memories["dst"]), expected(CASE, make_data(CASE, integers=True)), 0.0)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", ["src", "weights", "bias"])
def test_a_destination_that_overlaps(primitive: dnn.Primitive, memories: dict[str, Any], name: str, make: str) -> None:
    """The first byte of dst is the last element of another argument, and the other way round."""
    dst, other = memories["dst"].desc, memories[name].desc
    room = np.zeros(dst.size_bytes + other.size_bytes - 4, np.uint8)
    for first, second in ((dst, other), (other, dst)):
        shared = {
            "dst" if desc is dst else name: dnn.Memory(desc, room[start : start + desc.size_bytes])
            for desc, start in ((first, 0), (second, first.size_bytes - 4))
        }
        with pytest.raises(dnn.InvalidArguments, match=f"dst overlaps {name}"):
            getattr(primitive, make)(**{**memories, **shared})


def test_neighbours_do_not_overlap(primitive: dnn.Primitive, memories: dict[str, Any]) -> None:
    dst, bias = memories["dst"].desc, memories["bias"].desc
    room = np.zeros(dst.size_bytes + bias.size_bytes, np.uint8)
    own = dnn.Memory(dst, room[: dst.size_bytes])
    behind = dnn.Memory(bias, room[dst.size_bytes :])
    behind.array[:] = memories["bias"].array
    primitive.execute(**{**memories, "dst": own, "bias": behind})
    assert_within(read(own), expected(CASE, make_data(CASE, integers=True)), 0.0)


def test_inputs_may_share_memory(isa: str) -> None:
    case = case_of("mb1ic8ih3oc8oh1kh3ph0 nhwc nhwc - -")
    primitive = dnn.Primitive(proven(case, isa))
    weights = dnn.Memory(primitive.pd.plan.tensors["weights"])
    weights.array[:] = np.arange(weights.array.size)
    src = dnn.Memory(primitive.pd.src_desc, weights.array[:72])
    dst = dnn.Memory(primitive.pd.dst_desc)
    primitive.execute(src=src, weights=weights, dst=dst)
    wanted = np.einsum("nchw,ochw->no", src.numpy().astype(float), weights.numpy().astype(float))
    assert np.array_equal(read(dst)[:, :, 0, 0], wanted)


def test_a_wrong_stream(primitive: dnn.Primitive, memories: dict[str, Any]) -> None:
    with pytest.raises(dnn.InvalidArguments, match="stream must be a Stream or None, not Engine"):
        primitive.execute(dnn.Engine(), **memories)  # type: ignore[arg-type]


def test_a_stream_of_another_engine(primitive: dnn.Primitive, memories: dict[str, Any]) -> None:
    engine = primitive.pd.engine
    other = replace(engine, threads=engine.threads + 1, l2_bytes=engine.l2_bytes * 2)
    told = f"l2_bytes {other.l2_bytes} instead of {engine.l2_bytes}"
    with pytest.raises(dnn.InvalidArguments, match=f"stream is of another engine, .*{told}"):
        primitive.execute(dnn.Stream(other), **memories)
    tuned = replace(engine, tuning=replace(engine.tuning, phases=replace(engine.tuning.phases, call_cycles=99)))
    with pytest.raises(dnn.InvalidArguments, match="another tuning: make it of the primitive's engine"):
        primitive.execute(dnn.Stream(tuned), **memories)
    primitive.execute(dnn.Stream(replace(engine)), **memories)


@pytest.mark.parametrize("case", [CASE, PLANAR], ids=str)  # without scratch, and with
def test_one_primitive_from_many_threads(isa: str, case: Any) -> None:
    primitive = dnn.Primitive(proven(case, isa, threads=2))
    data = [make_data(case, integers=True, seed=seed) for seed in range(6)]
    wanted = [expected(case, one) for one in data]
    start = Barrier(len(data))

    def work(number: int) -> None:
        start.wait(timeout=60)
        for _ in range(20):
            assert_within(run(primitive, data[number]), wanted[number], 0.0)

    with ThreadPoolExecutor(len(data)) as pool:
        list(pool.map(work, range(len(data)), timeout=120))
