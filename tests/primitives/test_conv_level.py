"""Direct convolutions whose channels would half fill the last wide vector take narrow ones, where these cost less."""

from dataclasses import replace

import pytest

import asmdnn as dnn
from tests.primitives.conv_case import case_of
from tests.primitives.conv_run import check_emulated
from tests.support.plans import proved_desc

WIDE = "avx512_core"


def planned(line: str, machine: str = "zen4", isa: str = WIDE) -> dnn.PrimitiveDesc:
    case = case_of(line)
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=1 << 20, machine=machine)
    return proved_desc(case.desc(), case.attr(), engine)


# A problem, and the formats of its tensors: of narrow ones no more is padded than a ymm register.
NARROW = {
    "mb1ic16ih14oc24oh14kh1ph0 any any - - any": ("aBcd16b", "aBcd8b"),
    "mb1ic24ih12oc8oh12kh3ph1 any any - - any": ("aBcd8b", "aBcd8b"),
    "mb1ic64ih8oc40oh8kh3ph1 any any bias relu any": ("aBcd16b", "aBcd8b"),
    "mb1ic64ih8oc24oh8kh1ph0 nhwc nhwc bias - any": ("acdb", "acdb"),
    "g2mb1ic48ih6oc48oh6kh3ph1 nhwc nhwc - - any": ("acdb", "acdb"),
}
STEMS = {
    "mb1ic3ih14oc24oh14kh3ph1 any any - - any": ("abcd", "aBcd8b"),
    "mb1ic2ih19oc8oh10kh3sh2ph1 any any bias relu any": ("abcd", "aBcd8b"),
}
OTHERS = (
    "mb1ic3ih14oc24oh14kh3ph1 any nChw16c - - any",
    "mb1ic16ih14oc32oh14kh1ph0 any any - - any",  # whole zmm registers
    "mb1ic16ih14oc30oh14kh1ph0 any any - - any",  # less than half a ymm register is empty
    "mb1ic64ih14oc56oh14kh3ph1 any any - - any",  # 7 ymm registers cost more than 4 zmm registers
    "mb1ic16ih14oc24oh14kh1ph0 any nChw16c - - any",  # 32 channels are stored
)


@pytest.mark.parametrize(("line", "formats"), NARROW.items(), ids=str)
def test_narrow_vectors(line: str, formats: tuple[str, str]) -> None:
    pd = planned(line)
    assert pd.implementation == "direct:avx2"
    assert (pd.src_desc.tag, pd.dst_desc.tag) == formats
    assert {spec.isa for phase in pd.plan.phases for spec in phase.kernels} == {"avx2"}


@pytest.mark.parametrize(("line", "formats"), STEMS.items(), ids=str)
def test_rows_of_few_channels(line: str, formats: tuple[str, str]) -> None:
    pd = planned(line)
    assert pd.implementation == "few_inputs:avx2"
    assert (pd.src_desc.tag, pd.dst_desc.tag) == formats
    check_emulated(pd, case_of(line))


@pytest.mark.parametrize("line", OTHERS)
def test_wide_vectors(line: str) -> None:
    assert planned(line).implementation in (f"direct:{WIDE}", f"few_inputs:{WIDE}")


def test_what_a_class_does_not_say_is_wide() -> None:
    for line in (*NARROW, *STEMS):
        assert planned(line, "skylake_sp").implementation.endswith(WIDE)


@pytest.mark.parametrize("line", [*NARROW, *STEMS, *OTHERS])
def test_chosen_formats_are_taken_again(line: str) -> None:
    """With weights that somebody has packed, it is the same plan."""
    case, pd = case_of(line), planned(line)
    desc = case.desc().with_formats({role: pd.plan.tensors[role] for role in ("src", "weights", "dst")})
    engine = dnn.Engine(isa=WIDE, threads=1, l2_bytes=1 << 20, machine="zen4")
    again = dnn.primitive_desc(desc, case.attr(), engine)
    assert again.implementation == pd.implementation
    assert again.plan.specs == pd.plan.specs


@pytest.mark.parametrize("line", [*NARROW][:2])
def test_results(line: str) -> None:
    """Of the kernels of narrow vectors on what lies in blocks of wide ones."""
    case, pd = case_of(line), planned(line)
    assert pd.implementation == "direct:avx2"
    check_emulated(pd, case)


def test_tensors_of_another_type_stay_wide() -> None:
    x = dnn.MemoryDesc((1, 16, 6, 6), dnn.bf16, "axb")
    y, w = replace_channels(x, 24), dnn.MemoryDesc((24, 16, 1, 1), dnn.bf16, "any")
    engine = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen4")
    assert dnn.primitive_desc(dnn.ConvolutionForward(x, w, y), engine=engine).implementation.endswith(
        "avx512_core_bf16"
    )


def replace_channels(x: dnn.MemoryDesc, channels: int) -> dnn.MemoryDesc:
    images, _, *pixels = x.dims
    return dnn.MemoryDesc((images, channels, *pixels), x.dtype, "axb")


WINOGRAD = {
    "mb1ic64ih28oc8oh28kh3ph1 any any bias relu any": "winograd:avx2",
    "mb1ic24ih28oc24oh28kh3ph1 nhwc nhwc - - any": "winograd:avx2",
    "g8mb1ic64ih28oc64oh28kh3ph1 any any - - any": "winograd:avx2",  # wide ones would compute it as rows
    "g3mb1ic72ih28oc72oh28kh3ph1 any any - - any": "winograd:avx2",
    "mb1ic24ih28oc24oh28kh3ph1 nChw16c nChw16c - - any": "winograd:avx512_core",  # blocks of wide vectors
    "mb1ic64ih28oc64oh28kh3ph1 any any - - any": "winograd:avx512_core",
}


@pytest.mark.parametrize(("line", "name"), WINOGRAD.items(), ids=str)
def test_vectors_of_winograds_algorithm(line: str, name: str) -> None:
    case = case_of(line)
    desc = replace(case.desc(), algorithm="auto")
    engine = dnn.Engine(isa=WIDE, threads=1, l2_bytes=1 << 20, machine="zen4")
    pd = proved_desc(desc, case.attr(), engine)
    assert pd.implementation == name
    level = {spec.isa for phase in pd.plan.phases for spec in phase.kernels}
    assert level == {name.partition(":")[2]}
