"""Rows of grouped convolutions whose sizes and bands are numbers that kernels read: cut, shared, proved, equal."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.row_segments import cut_columns, overlapping_columns
from asmdnn.runtime.kernels import kernel_cache
from tests.primitives.conv_case import MACHINE, ConvCase, case_of
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import check_results
from tests.primitives.guarded import check_at_pages
from tests.primitives.test_guard_pages import run_guarded
from tests.support.plans import proved_desc


def depthwise(height: int, width: int, kernel: int = 3, stride: int = 1, chain: str = "relu") -> ConvCase:
    """Of 16 channels, with half of the kernel as padding."""
    tall, wide = ((size - 1) // stride + 1 for size in (height, width))
    sizes = f"g16mb2ic16ih{height}iw{width}oc16oh{tall}ow{wide}kh{kernel}kw{kernel}"
    return case_of(f"{sizes}sh{stride}sw{stride}ph{kernel // 2}pw{kernel // 2} any any bias {chain}")


def planned(case: ConvCase, isa: str) -> dnn.PrimitiveDesc:
    return proved_desc(case.desc(), case.attr(), dnn.Engine(isa=isa, threads=1, machine=MACHINE))


def specs_of(plan: Plan) -> list[GroupedRowsSpec]:
    return [spec for spec in plan.specs if isinstance(spec, GroupedRowsSpec)]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5, 9])
def test_segments_cover_a_row(kernel: int, stride: int) -> None:
    """Every pixel is computed, by windows that have exactly the columns which are inside the image."""
    for size in range(1, 90):
        for padding in range(kernel):
            across = (size + 2 * padding - kernel) // stride + 1
            axis = Axis(size, across, kernel, stride, 1, padding)
            if across < 1:
                continue
            exact, again = cut_columns(axis, 12), overlapping_columns(axis, 12)
            for segments, overlap in ((exact, 0), *([again] if again else [])):
                x = 0
                for number, segment in enumerate(segments):
                    x -= overlap * (number == 1)
                    for _ in range(segment.times):
                        first = x * stride - padding
                        inside = [c for c in range((segment.pixels - 1) * stride + kernel) if 0 <= first + c < size]
                        assert (inside or [0]) == (list(range(segment.low, segment.high)) or [0])
                        x += segment.pixels
                assert x == across
                assert 0 <= overlap <= segments[0].pixels


def test_images_of_many_sizes_share_kernels(planned_isa: str) -> None:
    """Widths of three and more segments, and heights, have few kernels in all: sizes of segments, two ends each."""
    found = {
        spec.code_spec
        for height, width in zip(range(9, 60, 5), range(100, 200, 9), strict=False)
        for spec in specs_of(planned(depthwise(height, width), planned_isa).plan)
    }
    assert len({spec.segments for spec in found}) == len(found) <= 6


def test_the_code_does_not_depend_on_the_image(planned_isa: str) -> None:
    for spec in specs_of(planned(depthwise(20, 100), planned_isa).plan):
        codes = []
        for one in (spec, spec.code_spec):
            asm = Assembler(spec.name)
            one.generate(asm)
            codes.append(asm.finish().data)
        assert codes[0] == codes[1]
        assert spec.code_spec.code_spec == spec.code_spec
        assert spec.code_spec.name == spec.name


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
def test_pixels_that_are_computed_again(isa: str, kernel: int, stride: int) -> None:
    """Of some widths, where it costs little."""
    found = 0
    for width in range(60, 90, 5):
        case = depthwise(11, stride * width, kernel, stride)
        pd = planned(case, isa)
        if any(spec.overlap for spec in specs_of(pd.plan)):
            check_results(dnn.Primitive(pd), case)
            found += 1
    assert found


def test_little_is_computed_again() -> None:
    """Rows of 112 in segments of 12 are cut exactly, those of 118 are not."""
    assert overlapping_columns(Axis(112, 112, 3, 1, 1, 1), 12) is None
    segments, overlap = overlapping_columns(Axis(118, 118, 3, 1, 1, 1), 12) or ((), 0)
    assert ([segment.pixels for segment in segments], overlap) == ([12, 12, 12], 2)


def test_nothing_is_computed_again_that_is_read(isa: str) -> None:
    case = depthwise(11, 67, chain="sum:0.5+relu")
    pd = planned(case, isa)
    assert not any(spec.overlap for spec in specs_of(pd.plan))
    check_results(dnn.Primitive(pd), case)


def test_guard_pages(isa: str) -> None:
    case = depthwise(13, 67, 5)
    data = make_data(case, integers=True)
    primitive, wanted = dnn.Primitive(planned(case, isa)), expected(case, data)
    check_at_pages(lambda at_end: run_guarded(primitive, data.arrays(), wanted, at_end))


def test_specs_of_one_code_are_one_kernel(isa: str) -> None:
    specs = specs_of(planned(depthwise(40, 67), isa).plan)
    codes = {spec.code_spec for spec in specs}
    assert len(specs) > len(codes)
    assert len({kernel.address for kernel in kernel_cache().load(specs)}) == len(codes)


def changed(plan: Plan, place: int, more: int) -> Plan:
    words = plan.constants["shape"].copy()
    words[place] += more
    return replace(plan, constants={**plan.constants, "shape": words})


def test_numbers_of_post_ops_are_data(isa: str) -> None:
    """Two slopes have one code, and each its own results; at guard pages, too."""
    codes = set()
    for alpha in (0.25, 0.5):
        case = depthwise(13, 67, 5, chain=f"relu:{alpha}")
        pd, data = planned(case, isa), make_data(case, integers=True)
        codes.add(frozenset(spec.code_spec for spec in specs_of(pd.plan)))
        assert all(len(spec.numbers) == 1 for spec in specs_of(pd.plan))
        primitive, wanted = dnn.Primitive(pd), expected(case, data)
        check_at_pages(lambda at_end, primitive=primitive, data=data, wanted=wanted: run_guarded(  # type: ignore[misc]
            primitive, data.arrays(), wanted, at_end
        ))  # fmt: skip
    assert len(codes) == 1


def test_vectors_of_numbers_lie_in_lines(planned_isa: str) -> None:
    """As many as there are bands: an instruction that reads one in two lines takes longer."""
    plan = planned(depthwise(40, 67, chain="relu:0.25"), planned_isa).plan
    phase = plan.phases[0]
    starts = phase.records[:, 1 + phase.kernels[0].frame.index("shape")]
    assert len({*starts}) > 1
    assert not ((plan.constants["shape"].ctypes.data + starts) % 64).any()


@pytest.mark.parametrize("place", [0, 1, 4, -2])
def test_other_numbers_are_told(planned_isa: str, place: int) -> None:
    """What a constant says, and what the footprint is of."""
    plan = planned(depthwise(20, 100), planned_isa).plan
    with pytest.raises(PlanError, match="has other numbers than the footprint is of"):
        changed(plan, place, 1).check()


def test_numbers_of_another_kernel_are_told(planned_isa: str) -> None:
    plan = planned(depthwise(40, 67), planned_isa).plan
    phase = plan.phases[0]
    records = phase.records.copy()
    records[:, 1 + phase.kernels[0].frame.index("shape")] = 0
    assert (records != phase.records).any()
    with pytest.raises(PlanError, match="has other numbers than the footprint is of"):
        replace(plan, phases=(replace(phase, records=np.ascontiguousarray(records)), *plan.phases[1:])).check()
