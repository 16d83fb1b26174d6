"""bf16 on CPU classes that multiply its pairs slowly: where plans take f32 in their place, and their results."""

import pytest

import asmdnn as dnn
from tests.primitives.typed_case import TypedCase, check

NATIVE = "avx512_core_bf16"
SLOW, FAST = "sapphire_rapids", "zen4"


def engine(machine: str, isa: str = NATIVE) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=1, machine=machine)


def free(*dims: int, tag: str = "any", dtype: dnn.types.DataType = dnn.bf16) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag)


def convolution(channels: int, results: int, size: int, kernel: int = 1, stride: int = 1) -> dnn.ConvolutionForward:
    pad, out = (kernel // 2,) * 2, (size - 1) // stride + 1
    return dnn.ConvolutionForward(
        src=free(1, channels, size, size, tag="acdb"),
        weights=free(results, channels, kernel, kernel),
        dst=free(1, results, out, out, tag="acdb"),
        strides=(stride, stride),
        padding_l=pad,
        padding_r=pad,
    )


@pytest.mark.parametrize(("rows", "machine", "level"), [
    (1, SLOW, NATIVE), (2, SLOW, NATIVE), (3, SLOW, "avx512_core"), (128, SLOW, "avx512_core"), (128, FAST, NATIVE),
])  # fmt: skip
def test_rows_that_wait_for_multiplies(rows: int, machine: str, level: str) -> None:
    """One and two wait for weights, of which pairs are as many bytes."""
    for desc in (
        dnn.MatMul(free(rows, 768), free(768, 768), free(rows, 768)),
        dnn.InnerProductForward(free(rows, 768), free(768, 768), free(rows, 768)),
    ):
        pd = dnn.primitive_desc(desc, engine=engine(machine))
        pd.plan.check()
        assert pd.implementation.endswith(f":{level}")


def test_levels_above_and_below() -> None:
    desc = dnn.MatMul(free(16, 64), free(64, 64), free(16, 64))
    for isa in ("avx2", "avx512_core_vnni", NATIVE, "avx512_core_fp16"):
        name = dnn.primitive_desc(desc, engine=engine(SLOW, isa)).implementation
        assert name.endswith(":avx2" if isa == "avx2" else ":avx512_core")


def test_convolutions() -> None:
    """A layer of stride 2 would widen four pixels of src for each that it reads."""
    for desc, machine, name in (
        (convolution(64, 64, 28, 3), SLOW, "widen+direct:avx512_core"),
        (convolution(64, 64, 28, 3), FAST, f"direct:{NATIVE}"),
        (convolution(256, 128, 56, 1, 2), SLOW, f"direct:{NATIVE}"),
    ):
        pd = dnn.primitive_desc(desc, engine=engine(machine))
        assert pd.implementation == name
        refused = [r.reason for r in pd.refusals if "of pairs of bf16" in r.reason]
        assert bool(refused) == (machine == SLOW and name.startswith("direct"))


def test_weights_in_pairs_are_taken_as_they_are() -> None:
    """16 rows are too few for a copy of weights; formats that are open are those of f32."""
    packed = dnn.MatMul(free(16, 768), free(768, 768, tag="BA32b2a"), free(16, 768))
    assert dnn.primitive_desc(packed, engine=engine(SLOW)).implementation == f"tiles:{NATIVE}"


def test_plain_weights_after_l2_are_packed_in_pairs() -> None:
    for columns, level in ((512, "avx512_core"), (4096, NATIVE)):
        desc = dnn.MatMul(free(16, 1024), free(1024, columns, tag="ab"), free(16, columns))
        assert dnn.primitive_desc(desc, engine=engine(SLOW)).implementation.endswith(f"tiles:{level}")


def test_f32_is_not_rounded_to_what_is_slower() -> None:
    f32 = (free(*dims, dtype=dnn.f32) for dims in ((64, 768), (768, 768), (64, 768)))
    desc, attr = dnn.MatMul(*f32), dnn.Attr(fpmath_mode="bf16")
    assert dnn.primitive_desc(desc, attr, engine(SLOW)).implementation == "tiles:avx512_core"
    assert dnn.primitive_desc(desc, attr, engine(FAST)).implementation == f"bf16+tiles:{NATIVE}"


def test_attention() -> None:
    desc = dnn.MemoryDesc((1, 4, 64, 64), dnn.bf16, "abcd")
    for machine, name in ((SLOW, "reorder+unpacked_attention:avx512_core"), (FAST, f"attention:{NATIVE}")):
        attention = dnn.AttentionForward(dnn.PropKind.forward_inference, desc, desc, desc, desc)
        assert dnn.primitive_desc(attention, engine=engine(machine)).implementation == name


@pytest.mark.isa(NATIVE)
@pytest.mark.parametrize("types", ["bf16:bf16:f32", "bf16:bf16:bf16"])
def test_results(types: str) -> None:
    for rows, columns, depth, tag in ((2, 33, 65, "any"), (17, 70, 129, "any"), (40, 64, 31, "ab"), (5, 17, 9, "ba")):
        check(TypedCase(rows, columns, depth, types, tag, machine=SLOW), NATIVE)
