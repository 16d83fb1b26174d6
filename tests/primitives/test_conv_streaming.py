"""Convolutions by rows whose dst is larger than the caches write past them."""

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase, case_of
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import memories_of, run
from tests.primitives.tensors import assert_within, read
from tests.support.plans import emulate_plan, proved_desc
from tests.support.tuning import tuned

STREAMED = [case_of(f"{words} relu") for words in (
    "g19mb2ic19ih9oc19oh9kh3ph1 any any bias",
    "g16mb1ic16ih8iw15oc16oh4ow8kh3kw3sh2sw2ph1pw1 any any -",
    "mb2ic3ih12iw28oc30oh12ow28kh3kw3ph1pw1 nchw any bias",
    "g512mb1ic512ih3oc512oh3kh3ph1 nhwc nhwc bias",
)]  # fmt: skip
OTHERS = [case_of(words) for words in (
    "g19mb2ic19ih9oc19oh9kh3ph1 any any bias sum",
    "g40mb1ic40ih9oc40oh9kh3ph1 nhwc nhwc bias relu",
    "mb2ic40ih9oc40oh9kh3ph1 any any bias relu",
)]  # fmt: skip


def planned(case: ConvCase, isa: str, threads: int = 1) -> dnn.PrimitiveDesc:
    with tuned("convolution", streaming_bytes=1):
        return proved_desc(case.desc(), case.attr(), dnn.Engine(isa=isa, threads=threads))


def streams(pd: dnn.PrimitiveDesc) -> set[bool]:
    return {getattr(spec, "streaming", False) for spec in pd.plan.specs}


@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_aligned_and_not(isa: str, case: ConvCase) -> None:
    pd, data = planned(case, isa), make_data(case, integers=True)
    assert streams(pd) == {True}
    for shift in (0, 1):
        memories = memories_of(pd, data)
        room = dnn.Memory(dnn.MemoryDesc((memories["dst"].array.size + 16,), dnn.f32, "a")).array
        room[:] = np.nan
        memories["dst"] = dnn.Memory(pd.dst_desc, room[shift : shift + memories["dst"].array.size])
        dnn.Primitive(pd).execute(**memories)
        assert_within(read(memories["dst"]), expected(case, data), 0.0)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_emulated(case: ConvCase) -> None:
    pd, data = planned(case, "avx512_core"), make_data(case, integers=True)
    assert streams(pd) == {True}
    memories = memories_of(pd, data)
    emulate_plan(pd.plan, memories)
    assert_within(read(memories["dst"]), expected(case, data), 0.0)


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_read_or_scattered_results_do_not(planned_isa: str, case: ConvCase) -> None:
    """Sums read dst; 40 channels last are no whole lines; tiles of many channels gain nothing."""
    assert streams(planned(case, planned_isa)) == {False}


def test_every_thread_count_gives_the_same_bytes(isa: str) -> None:
    data = make_data(STREAMED[0], integers=False)
    assert len({run(dnn.Primitive(planned(STREAMED[0], isa, threads)), data).tobytes() for threads in (1, 2, 5)}) == 1


@pytest.mark.parametrize(("images", "streamed"), [(4, False), (16, True)])
def test_only_a_large_dst(planned_isa: str, images: int, streamed: bool) -> None:
    case = case_of(f"g32mb{images}ic32ih112oc32oh112kh3ph1 any any - -")
    engine = dnn.Engine(isa=planned_isa, threads=1, machine="zen3")
    assert streams(dnn.primitive_desc(case.desc(), engine=engine)) == {streamed}
