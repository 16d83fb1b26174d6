"""1x1 convolutions by tiles of AMX, emulated: the matmuls that they are.  Others are in test_amx_rasters.py."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.planning.tuning import DEFAULT
from asmdnn.types import DataType
from tests.primitives.test_amx_matmul import ALWAYS
from tests.primitives.typed_conv import TypedConv, computed, holding, numbers, stored
from tests.support.plans import emulate_plan, proved_desc

ISA = AVX512_CORE_AMX.name
EMULATED = pytest.mark.emulated(ISA)
TEXT = "mb2ic70ih5iw4oc40oh5ow4kh1kw1ph0pw0"
BF16, U8, S8 = (dnn.bf16, dnn.bf16, dnn.f32), (dnn.u8, dnn.s8, dnn.s32), (dnn.s8, dnn.s8, dnn.s32)


def planned(case: TypedConv, tuning: Any = ALWAYS) -> dnn.PrimitiveDesc:
    engine = dnn.Engine(isa=ISA, threads=1, l2_bytes=512 << 10, machine="zen3", tuning=tuning)
    return proved_desc(case.desc(), case.attr, engine)


def difference(case: TypedConv, pd: dnn.PrimitiveDesc) -> float:
    """The largest one to sums of products in float64, which are exact for bytes."""
    data = case.data()
    weights, src = data["weights"][:, :, 0, 0].astype(float), data["src"].reshape(2, 70, 20).astype(float)
    sums = (weights @ src).reshape(2, 40, 5, 4)
    if case.bias:
        sums += data["bias"].reshape(-1, 1, 1)
    if case.attr.post_ops:
        sums = sums.clip(0)
    got = computed(pd, data, emulated=True)
    return float(abs(got.astype(float) - numbers(stored(sums, case.types[2]), case.types[2])).max())


@EMULATED
@pytest.mark.parametrize("types", [BF16, U8, S8], ids=lambda types: str(types[0]))
@pytest.mark.parametrize("biased", [False, True])
def test_results(types: tuple[DataType, DataType, DataType], biased: bool) -> None:
    """In the formats that are chosen, and in channels last with plain weights; after a bias and relu."""
    for tags in (("any", "any", "any"), ("acdb", "abcd", "acdb")):
        case = TypedConv(TEXT, types, types[2] if biased else None, tags, dnn.Attr(["relu"] if biased else []))
        pd = planned(case)
        assert pd.implementation.startswith("product+amx") and pd.implementation.endswith(f":{ISA}")
        # 70 products of numbers below 1, and a bias, each added with a rounding: less than 73 * 72 * 2^-23.
        assert difference(case, pd) <= (0 if types[2] == dnn.s32 else 1e-3)


@EMULATED
def test_operands_of_channels_and_of_elements() -> None:
    """They are matrices, too; others are refused in words, and go by rows of pixels."""
    for dims, fits in (((1, 40, 1, 1), True), ((2, 40, 5, 4), True), ((1, 1, 1, 1), True), ((2, 40, 1, 1), False)):
        tag = "acdb" if dims == (2, 40, 5, 4) else "abcd"
        attr = dnn.Attr([dnn.Binary("mul", dnn.MemoryDesc(dims, dnn.f32, tag))])
        pd = planned(TypedConv(TEXT, BF16, attr=attr))
        assert pd.implementation.startswith("product+amx" if fits else "direct+amx")
        if not fits:
            assert any("for some dims of pixels" in str(refusal) for refusal in pd.refusals)
            continue
        data = TypedConv(TEXT, BF16).data()
        sums = data["weights"][:, :, 0, 0] @ data["src"].reshape(2, 70, 20)
        data["binary_0"] = 1.0 + (np.indices(dims).sum(axis=0) % 5)
        got = computed(pd, data, emulated=True)
        assert abs(got - sums.reshape(2, 40, 5, 4) * data["binary_0"]).max() < 5e-3


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("mb1ic64ih8oc64oh8kh3ph1", ("any", "any", "any")),
        ("mb1ic64ih8oc64oh4kh1ph0sh2", ("any", "any", "any")),
        ("g2mb1ic64ih8oc64oh8kh1ph0", ("any", "any", "any")),
        ("mb1ic64ih8oc64oh8kh1ph0", ("aBcd16b", "any", "any")),
    ],
)
def test_other_convolutions_are_no_matmuls(text: str, tags: tuple[str, str, str]) -> None:
    """Kernels of several positions, strides, groups, and pixels that are no rows."""
    pd = planned(TypedConv(text, U8, tags=tags))
    assert "product" not in pd.implementation
    assert any(str(refusal).startswith(f"product+amx:{ISA}") for refusal in pd.refusals)


def test_few_pixels_are_left_to_vectors() -> None:
    case = TypedConv("mb1ic64ih3oc64oh3kh1ph0", U8)
    assert "amx" not in planned(case, DEFAULT).implementation
    assert "amx" in planned(TypedConv("mb1ic256ih28oc256oh28kh1ph0", U8), DEFAULT).implementation


def test_scales_of_images_are_left_to_others() -> None:
    """They are no scales of rows, which pixels are."""
    case = TypedConv(TEXT, BF16, attr=dnn.Attr(scales={"src": 2}))
    engine = dnn.Engine(isa=ISA, threads=1, machine="zen3", tuning=ALWAYS)
    try:
        pd = dnn.primitive_desc(case.desc(), case.attr, engine)
    except dnn.Unimplemented as refusals:
        assert f"product+amx:{ISA}" in str(refusals)
    else:
        assert "amx" not in pd.implementation


@EMULATED
def test_weights_with_sums_of_columns() -> None:
    """s8 and a zero point of src: the same numbers as without, for src that much higher."""
    case = TypedConv(TEXT, U8, attr=dnn.Attr(zero_points={"src": 0}))
    pd = planned(case)
    assert "amx" in pd.implementation
    data = case.data()
    memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
    memories["src_zero_points"].array[:] = 9
    for name, dtype in (("src", dnn.u8), ("weights", dnn.s8)):
        plain = holding(dnn.MemoryDesc(data[name].shape, dtype, "abcd"), data[name])
        memories[name] = dnn.reorder(plain, pd.plan.tensors[name])
    emulate_plan(pd.plan, memories)
    want = data["weights"][:, :, 0, 0] @ (data["src"] - 9).reshape(2, 70, 20)
    assert np.array_equal(memories["dst"].numpy(), want.reshape(2, 40, 5, 4))
