"""Convolutions of large images: pieces whose windows lie inside come again and again, and change no bit."""

from collections import Counter
from dataclasses import replace

import pytest

import asmdnn as dnn
from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution import direct
from asmdnn.primitives.convolution.tiles import RowCut
from tests.primitives.conv_case import ConvCase, case_of
from tests.primitives.conv_reference import make_data
from tests.primitives.conv_run import check_results, run
from tests.primitives.test_conv_phases import SMALL_L2_BYTES

LINES = (
    "mb1ic9ih40iw9oc17oh40ow9kh3kw3ph1pw1 any any bias relu",  # strips of rows
    "mb2ic9ih41iw13oc17oh20ow7kh3kw3sh2sw2ph1pw1 any any bias sum:0.5",  # and of images, with a stride
    "mb1ic3ih3iw240oc9oh3ow240kh3kw3ph1pw1 nchw nhwc - -",  # columns of tiles
    "mb2ic9iw200oc17ow196kw5 any any - relu",  # one axis
    "mb1ic33ih24iw24oc40oh24ow24kh1kw1ph0pw0 any any bias sum",  # all pixels one row
    "mb1ic8ih30iw8oc16oh26ow4kh3kw3dh1dw1 any any - -",  # dilated, and no padding
    "mb1ic9id14ih4iw9oc17od14oh4ow9kd3kh3kw3pd1ph1pw1 any any bias relu",  # planes
    "mb1ic40ih40iw9oc17oh40ow9kh3kw3ph1pw1 any any bias sum+relu l2",  # ranges of channels
    "g2mb1ic32ih40iw9oc32oh40ow9kh3kw3ph1pw1 any any bias relu",  # groups
)
LIMITS: tuple[dict[str, int], ...] = (
    {}, {"written_out": 1, "round_records": 1}, {"written_out": 1, "round_records": 20}
)  # fmt: skip


def rounds_case(line: str) -> ConvCase:
    small = line.endswith(" l2")
    return replace(case_of(line.removesuffix(" l2")), l2_bytes=SMALL_L2_BYTES * small)


def planned(case: ConvCase, isa: str, **limits: int) -> dnn.PrimitiveDesc:
    """By direct convolution, all written out, or with these numbers of the tuning."""
    engine = dnn.Engine(isa=isa, threads=2, l2_bytes=case.l2_bytes or 512 << 10, machine="zen3")
    convolution = replace(engine.tuning.convolution, **limits)
    engine = replace(engine, tuning=replace(engine.tuning, convolution=convolution))
    plan = direct.plan(case.desc(), case.attr(), engine)
    assert not isinstance(plan, dnn.Refusal), plan
    plan.check()
    return dnn.PrimitiveDesc(case.desc(), case.attr(), engine, plan)


def calls_of(plan: Plan) -> Counter[KernelSpec]:
    found: Counter[KernelSpec] = Counter()
    for phase in plan.phases:
        for spec, calls, _ in phase.uses():
            found[replace(spec, prefetch_lines=0)] += calls  # type: ignore[type-var]
    return found


@pytest.mark.parametrize("line", LINES)
def test_rounds_write_out_less(planned_isa: str, line: str) -> None:
    """With the same calls of each kernel, but for what it prefetches."""
    case = rounds_case(line)
    all_of_it, some = planned(case, planned_isa).plan, planned(case, planned_isa, written_out=1, round_records=1).plan
    assert calls_of(all_of_it) == calls_of(some)
    assert calls_of(all_of_it) == calls_of(planned(case, planned_isa, **LIMITS[-1]).plan)
    sizes = [sum(len(phase.records) for phase in plan.phases) for plan in (all_of_it, some)]
    assert sizes[1] < sizes[0]
    assert not any(phase.repeats for phase in all_of_it.phases)


@pytest.mark.parametrize("line", LINES)
def test_the_bits_are_the_same(isa: str, line: str) -> None:
    case = rounds_case(line)
    data = make_data(case, integers=False)
    found = {run(dnn.Primitive(planned(case, isa, **limits)), data).tobytes() for limits in LIMITS}
    assert len(found) == 1
    check_results(dnn.Primitive(planned(case, isa, written_out=1, round_records=1)), case)


DEPTHWISE = (
    "g17mb2ic17ih41iw9oc17oh41ow9kh3kw3ph1pw1 any any bias relu",
    "g16mb1ic16ih61iw9oc16oh31ow5kh5kw3sh2sw2ph2pw1 any any bias sum",
    "g24mb1ic24id5ih30iw7oc24od5oh30ow7kd3kh3kw3pd1ph1pw1 any any - -",
    "g4mb1ic16ih40iw9oc16oh36ow9kh5kw3ph0pw1 any any - sum:0.5+relu",
)


def planned_rows(case: ConvCase, isa: str, written_out: int) -> dnn.PrimitiveDesc:
    """By kernels of rows, a few rows a record."""
    engine = dnn.Engine(isa=isa, threads=2, l2_bytes=512 << 10, machine="zen3")
    convolution = replace(engine.tuning.convolution, grouped_cycles=300, written_out=written_out)
    tuning = replace(engine.tuning, convolution=convolution, phases=replace(engine.tuning.phases, round_records=1))
    pd = dnn.primitive_desc(case.desc(), case.attr(), replace(engine, tuning=tuning))
    assert pd.implementation.split(":")[0] in ("depthwise", "grouped")
    pd.plan.check()
    return pd


def kernels_of(plan: Plan) -> Counter[KernelSpec]:
    found: Counter[KernelSpec] = Counter()
    for phase in plan.phases:
        for spec, calls, _ in phase.uses():
            found[spec] += calls
    return found


@pytest.mark.parametrize("line", DEPTHWISE)
def test_rows_come_in_rounds(planned_isa: str, line: str) -> None:
    all_of_it, some = (planned_rows(case_of(line), planned_isa, most).plan for most in (1 << 15, 1))
    assert kernels_of(all_of_it) == kernels_of(some)
    assert any(phase.repeats for phase in some.phases)


@pytest.mark.parametrize("line", DEPTHWISE)
def test_the_bits_of_rows_are_the_same(isa: str, line: str) -> None:
    case = case_of(line)
    data = make_data(case, integers=False)
    found = {run(dnn.Primitive(planned_rows(case, isa, most)), data).tobytes() for most in (1 << 15, 1)}
    assert len(found) == 1
    check_results(dnn.Primitive(planned_rows(case, isa, 1)), case)


def test_a_large_image_is_planned_by_its_edges() -> None:
    """A 1x1 convolution of 640 x 640 pixels has 273,068 tiles and panels."""
    case = case_of("mb1ic64ih640oc64oh640kh1 any any - -")
    plan = planned(case, "avx2").plan
    assert sum(phase.count for phase in plan.phases) == 273_068
    assert sum(len(phase.records) for phase in plan.phases) < 16_384


@pytest.mark.parametrize(("width", "pixels"), [(1, 6), (6, 6), (7, 6), (100, 6), (13, 12)])
def test_row_cut(width: int, pixels: int) -> None:
    """Sizes differ by one at most, larger first; every tile is found by where it begins."""
    cut = RowCut(width, pixels)
    tiles = range(cut.tiles)
    begins, sizes = ([int(of(t)) for t in tiles] for of in (cut.begins, cut.sizes))
    assert (
        sum(sizes) == width and sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1 <= sizes[0] <= pixels
    )
    assert [cut.tile_at(begin) for begin in (*begins, width)] == list(range(cut.tiles + 1))
    assert cut.first_run == (sizes[0], sizes.count(sizes[0]))
