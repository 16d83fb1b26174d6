"""The proof of a plan finds every way in which a plan was broken on purpose, and names what is touched wrongly."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError, PlanError
from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.conv_shape import BIAS, DST, PREFETCHED, SRC, TAPS, WEIGHTS
from asmdnn.planning.phase import Int64, Phase, View, views
from asmdnn.planning.plan import Plan
from tests.primitives.conv_case import case_of, proven
from tests.primitives.test_conv_phases import in_ranges

DIRECT = case_of("mb2ic17ih7oc33oh7kh3ph1 any any bias sum")
STRIDED = case_of("mb2ic17ih7oc9oh7kh3ph1 nhwc nhwc~3 bias relu")
REORDERED = case_of("mb2ic17ih7oc9oh7kh3ph1 nchw nchw bias relu")
SUMMED = case_of("mb2ic17ih7oc9oh7kh3ph1 nchw nchw bias sum")  # reorders dst as well, before
RANGES = in_ranges("mb1ic40ih14oc32oh14kh3ph1 any any bias relu")
FULL = case_of("mb2ic16ih4oc192oh4kh3ph1 nhwc any bias relu")  # no tails: the last byte of every tensor is touched


def edited(plan: Plan, edit: Callable[[Int64], Int64 | None], phase: int = 0) -> Plan:
    """The plan with other records in one phase."""
    records = plan.phases[phase].records.copy()
    changed = edit(records)
    records = records if changed is None else changed
    cycles = np.resize(plan.phases[phase].cycles, len(records))
    return with_phase(plan, phase, replace(plan.phases[phase], records=records, cycles=cycles))


def with_phase(plan: Plan, index: int, phase: Phase) -> Plan:
    return replace(plan, phases=(*plan.phases[:index], phase, *plan.phases[index + 1 :]))


def move(argument: int, by: int, record: int = -1) -> Callable[[Int64], None]:
    def edit(records: Int64) -> None:
        records[record, 1 + argument] += by

    return edit


def test_the_error_is_asmdnns_own() -> None:
    assert issubclass(PlanError, AsmdnnError)


@pytest.mark.parametrize(
    ("argument", "name"), [(SRC, "src"), (WEIGHTS, "weights"), (BIAS, "bias"), (DST, "dst"), (TAPS, "taps")]
)
@pytest.mark.parametrize("by", [1 << 20, -(1 << 20)], ids=["past the end", "before the start"])
def test_an_offset_outside(planned_isa: str, argument: int, name: str, by: int) -> None:
    plan = proven(DIRECT, planned_isa).plan
    with pytest.raises(PlanError, match=rf"phase 0, kernel conv_f32_.*({name}|tap list)"):
        edited(plan, move(argument, by)).check()


@pytest.mark.parametrize("name", ["src", "weights", "bias", "dst"])
def test_one_element_too_far(planned_isa: str, name: str) -> None:
    """Some record touches the last element of each tensor by one of its pointers; moved by 4 bytes, it leaves it."""
    plan = proven(FULL, planned_isa).plan
    pointers = [number for number, view in enumerate(plan.phases[0].arguments) if view.buffer == name]
    caught = 0
    for argument, record in product(pointers, range(len(plan.phases[0].records))):
        try:
            edited(plan, move(argument, 4, record)).check()
        except PlanError as error:
            caught += f"of {name} are touched" in str(error)
    assert caught


def test_what_is_only_prefetched_may_lie_anywhere(planned_isa: str) -> None:
    edited(proven(DIRECT, planned_isa).plan, move(PREFETCHED, 1 << 40)).check()


def test_a_record_twice(planned_isa: str) -> None:
    plan = proven(DIRECT, planned_isa).plan
    with pytest.raises(PlanError, match="of dst is written 2 times"):
        edited(plan, lambda records: np.concatenate((records, records[3:4]))).check()


@pytest.mark.parametrize("case", [DIRECT, STRIDED], ids=str)
def test_a_record_missing(planned_isa: str, case: Any) -> None:
    plan = proven(case, planned_isa).plan
    for record in range(0, len(plan.phases[0].records), 5):
        with pytest.raises(PlanError, match="of dst is never written"):
            edited(plan, lambda records, record=record: np.delete(records, record, axis=0)).check()


def test_tiles_that_overlap(planned_isa: str) -> None:
    """Two tiles of one kernel, the second moved onto the first."""

    def edit(records: Int64) -> None:
        same = np.flatnonzero(records[:, 0] == records[0, 0])
        records[same[1], 1 + DST] = records[same[0], 1 + DST]

    with pytest.raises(PlanError, match="of dst is written 2 times"):
        edited(proven(DIRECT, planned_isa).plan, edit).check()


@pytest.mark.parametrize("by", [-4, 4])
def test_writes_between_the_elements(planned_isa: str, by: int) -> None:
    plan = proven(STRIDED, planned_isa).plan
    with pytest.raises(PlanError, match="dst"):
        edited(plan, move(DST, by, len(plan.phases[0].records) // 2)).check()


def test_writes_that_straddle_elements(planned_isa: str) -> None:
    with pytest.raises(PlanError, match="dst"):
        edited(proven(DIRECT, planned_isa).plan, move(DST, 2, 3)).check()


def with_taps(plan: Plan, edit: Callable[[Int64], Int64 | None]) -> Plan:
    taps = plan.constants["taps"].copy()
    changed = edit(taps)
    return replace(plan, constants={"taps": taps if changed is None else changed})


@pytest.mark.parametrize("count", [-1, 1 << 40])
def test_a_tap_list_that_leaves_its_constant(planned_isa: str, count: int) -> None:
    def edit(taps: Int64) -> None:
        taps[0] = count

    with pytest.raises(PlanError, match=r"phase 0, kernel conv_f32_.*: the tap list at byte .* leaves its constant"):
        with_taps(proven(DIRECT, planned_isa).plan, edit).check()


def test_a_tap_list_that_is_cut_short(planned_isa: str) -> None:
    with pytest.raises(PlanError, match=r"the tap list at byte .* leaves its constant"):
        with_taps(proven(DIRECT, planned_isa).plan, lambda taps: taps[:-1]).check()


def test_a_tap_list_that_starts_within_a_word(planned_isa: str) -> None:
    with pytest.raises(PlanError, match=r"the tap list at byte .* leaves its constant"):
        edited(proven(DIRECT, planned_isa).plan, move(TAPS, 4, 0)).check()


def test_a_tap_in_the_middle_of_an_element(planned_isa: str) -> None:
    def edit(taps: Int64) -> None:
        taps[1] += 2

    with pytest.raises(PlanError, match=r"a tap is at byte \d+ of src, in the middle of an element"):
        with_taps(proven(DIRECT, planned_isa).plan, edit).check()


@pytest.mark.parametrize(("at", "name"), [(1, "src"), (2, "weights")])
@pytest.mark.parametrize("value", [-(1 << 20), 1 << 20])
def test_a_tap_outside(planned_isa: str, at: int, name: str, value: int) -> None:
    def edit(taps: Int64) -> None:
        taps[at] = value

    with pytest.raises(PlanError, match=f"of {name} are touched"):
        with_taps(proven(DIRECT, planned_isa).plan, edit).check()


@pytest.mark.parametrize("kernel", [-1, 99])
def test_a_kernel_that_does_not_exist(planned_isa: str, kernel: int) -> None:
    def edit(records: Int64) -> None:
        records[0, 0] = kernel

    with pytest.raises(PlanError, match=f"phase 0.* kernel {kernel}"):
        edited(proven(DIRECT, planned_isa).plan, edit).check()


@pytest.mark.parametrize("change", ["type", "order", "width"])
def test_records_that_the_executor_would_misread(planned_isa: str, change: str) -> None:
    """It reads int64[n, 1 + arguments], dense."""
    changes: dict[str, Callable[[Int64], Any]] = {
        "type": lambda records: records.astype(np.int32),
        "order": np.asfortranarray,
        "width": lambda records: np.ascontiguousarray(records[:, :-1]),
    }
    with pytest.raises(PlanError, match="records"):
        edited(proven(DIRECT, planned_isa).plan, changes[change]).check()


def test_a_phase_with_too_few_arguments(planned_isa: str) -> None:
    plan = proven(REORDERED, planned_isa).plan
    first = plan.phases[0]
    assert len(first.arguments) < len(plan.phases[1].arguments)
    narrow = replace(first, arguments=first.arguments[:1], records=np.ascontiguousarray(first.records[:, :2]))
    with pytest.raises(PlanError, match=r"kernel .* takes 2 arguments, its phase has 1"):
        with_phase(plan, 0, narrow).check()


def test_an_output_that_is_read_by_other_records(planned_isa: str) -> None:
    plan = proven(STRIDED, planned_isa).plan
    names = list(plan.phases[0].arguments)
    names[SRC] = View("dst")
    with pytest.raises(PlanError, match="dst"):
        with_phase(plan, 0, replace(plan.phases[0], arguments=tuple(names))).check()


@pytest.mark.parametrize("name", ["weights", "taps"])
def test_a_buffer_that_nobody_may_write(planned_isa: str, name: str) -> None:
    plan = proven(DIRECT, planned_isa).plan
    names = list(plan.phases[0].arguments)
    names[DST] = View(name)
    with pytest.raises(PlanError, match=f"{name}"):
        with_phase(plan, 0, replace(plan.phases[0], arguments=tuple(names))).check()


def test_an_output_that_is_not_declared(planned_isa: str) -> None:
    """A primitive asks the plan what is written, to refuse read-only and shared memory."""
    with pytest.raises(PlanError, match="dst"):
        replace(proven(DIRECT, planned_isa).plan, outputs=()).check()


def test_an_output_of_no_tensor(planned_isa: str) -> None:
    with pytest.raises(PlanError, match="more is said to be an output"):
        replace(proven(DIRECT, planned_isa).plan, outputs=("dst", "more")).check()


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (("more", "dst"), "names no input and an output"),
        (("src",), "names no input and an output"),
        (("dst", "dst"), "the first must be an input, the second an output"),
        (("bias", "src"), "the first must be an input, the second an output"),
        (("src", "dst"), "which lie otherwise"),
    ],
)
def test_pairs_that_cannot_be_one_memory(planned_isa: str, pair: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        replace(proven(DIRECT, planned_isa).plan, in_place=(pair,)).check()


def test_phases(planned_isa: str) -> None:
    before, product, after = proven(REORDERED, planned_isa).plan.phases
    assert before.arguments[:2] == views(("src", "copy of src"))
    assert product.arguments[:4] == views(("copy of src", "weights", "bias", "copy of dst"))
    assert after.arguments[:2] == views(("copy of dst", "dst"))
    assert not any(phase.continues for phase in (before, product, after))
    assert len(proven(SUMMED, planned_isa).plan.phases) == 4


@pytest.mark.parametrize(
    ("kept", "name"),
    [((1, 2), "copy of src"), ((0, 2), "copy of dst"), ((0, 1), "dst"), ((1, 0, 2), "copy of src")],
)
def test_a_phase_missing_or_too_late(planned_isa: str, kept: tuple[int, ...], name: str) -> None:
    """Nothing is read before it is written, and outputs are written at all."""
    plan = proven(REORDERED, planned_isa).plan
    with pytest.raises(PlanError, match=f"{name}"):
        replace(plan, phases=tuple(plan.phases[i] for i in kept)).check()


def test_the_old_dst_must_be_in_place_when_it_is_summed(planned_isa: str) -> None:
    plan = proven(SUMMED, planned_isa).plan
    assert plan.phases[1].arguments[:2] == views(("dst", "copy of dst"))
    with pytest.raises(PlanError, match="copy of dst"):
        replace(plan, phases=(plan.phases[0], *plan.phases[2:])).check()


@pytest.mark.parametrize("phase", [0, 2])
def test_a_reorder_that_leaves_something_out(planned_isa: str, phase: int) -> None:
    plan = proven(REORDERED, planned_isa).plan
    name = plan.phases[phase].arguments[1].buffer
    with pytest.raises(PlanError, match=f"phase {phase}: element .* of {name} is never written"):
        edited(plan, lambda records: records[1:].copy(), phase).check()


def test_ranges_of_channels(planned_isa: str) -> None:
    plan = proven(RANGES, planned_isa).plan
    assert len(plan.phases) > 2

    def swap(records: Int64) -> None:
        same = np.flatnonzero((records[:, 0] == records[0, 0]) & (records[:, 1 + DST] != records[0, 1 + DST]))
        records[[0, same[0]]] = records[[same[0], 0]]

    with pytest.raises(PlanError, match=r"phase 1: record .* does not continue its own output"):
        edited(plan, swap, 1).check()
    with pytest.raises(PlanError, match="phase 1"):
        edited(plan, lambda records: records[:-1].copy(), 1).check()
    with pytest.raises(PlanError, match="phase 0"):
        with_phase(plan, 0, replace(plan.phases[0], continues=True)).check()


def test_phases_that_do_not_wait_for_other_buffers(planned_isa: str) -> None:
    """The product reads what all records of the reorder before wrote, so threads have to meet."""
    plan = proven(REORDERED, planned_isa).plan
    with pytest.raises(PlanError, match="phase 1 continues"):
        with_phase(plan, 1, replace(plan.phases[1], continues=True)).check()


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A kernel that exists only as a footprint."""

    name: str
    accesses: Footprint
    isa: str = "avx2"

    def footprint(self) -> Footprint:
        return self.accesses

    def generate(self, asm: Any) -> None:
        raise NotImplementedError


def test_kernels_of_one_phase_that_depend_on_each_other() -> None:
    """src -> scratch -> dst needs a barrier in between; here both are records of one phase."""
    desc = dnn.MemoryDesc((16,), dnn.f32, "a")
    fill = MadeUp("fill", Footprint((Range(0, 0, 64),), (Range(1, 0, 64),)))
    drain = MadeUp("drain", Footprint((Range(1, 0, 64),), (Range(2, 0, 64),)))
    arguments = views(("src", "scratch", "dst"))

    def phase(*kernels: int) -> Phase:
        records = np.array([[k, 0, 0, 0] for k in kernels], np.int64)
        return Phase((fill, drain), arguments, records, np.ones(len(kernels), np.int32))

    plan = Plan("made up", (phase(0), phase(1)), {"src": desc, "dst": desc}, {}, {"scratch": 64}, ("dst",))
    plan.check()
    with pytest.raises(PlanError, match="scratch"):
        replace(plan, phases=(phase(0, 1),)).check()


def test_scratch_is_written_again_after_a_barrier() -> None:
    """Two rounds of filling a part of scratch and draining it; without a barrier the second filling is refused."""
    desc = dnn.MemoryDesc((32,), dnn.f32, "a")
    fill = MadeUp("fill", Footprint((Range(0, 0, 64),), (Range(1, 0, 64),)))
    drain = MadeUp("drain", Footprint((Range(1, 0, 64),), (Range(2, 0, 64),)))

    def phase(kernel: int, *offsets: int, independent: bool = False) -> Phase:
        records = np.array([[kernel, *offsets]], np.int64)
        arguments, cycles = views(("src", "scratch", "dst")), np.ones(1, np.int32)
        return Phase((fill, drain), arguments, records, cycles, independent=independent)

    phases = (phase(0, 0, 64, 0), phase(1, 0, 64, 0), phase(0, 64, 64, 0), phase(1, 0, 64, 64))
    plan = Plan("made up", phases, {"src": desc, "dst": desc}, {}, {"scratch": 256}, ("dst",))
    plan.check()
    with pytest.raises(PlanError, match="element 0 of scratch is never written"):
        replace(plan, phases=(*phases[:3], phase(1, 0, 0, 64))).check()
    with pytest.raises(PlanError, match="element 16 of scratch is written 2 times"):
        replace(plan, phases=(phases[0], phase(0, 64, 64, 0, independent=True), *phases[1:])).check()
    with pytest.raises(PlanError, match="element 0 of dst is written 2 times"):
        replace(plan, phases=(*phases[:2], phases[2], phases[1])).check()


def test_groups_that_differ_in_their_tap_lists_alone() -> None:
    """The second group reads the half of its scratch that nobody has written."""
    desc = dnn.MemoryDesc((32,), dnn.f32, "a")
    fill = MadeUp("fill", Footprint((Range(0, 0, 64),), (Range(1, 0, 64),)))
    read = TapList(3, (1,), ((Range(1, 0, 64),),))
    drain = MadeUp("drain", Footprint((), (Range(2, 0, 64),), read))
    cycles, groups = np.ones(4, np.int32), np.array([0, 2, 4])

    def plan(second: int) -> Plan:
        records = np.array([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 64, 0, 0, 0], [1, 0, 0, 64, second]], np.int64)
        phase = Phase((fill, drain), views(("src", "own", "dst", "taps")), records, cycles, groups=groups)
        constants = {"taps": np.array([1, 0, 1, 64], np.int64)}
        tensors, scratch = {"src": desc, "dst": desc}, {"own": 128}
        return Plan("made up", (phase,), tensors, constants, scratch, ("dst",), per_part=("own",))

    plan(second=0).check()
    with pytest.raises(PlanError, match="record 3 reads bytes of own that its group has not written"):
        plan(second=16).check()


def gaps(isa: str) -> Plan:
    """A product that copies src to rows in scratch with gaps between them."""
    src, dst = (dnn.MemoryDesc((64, size), dnn.f32, "ab") for size in (1024, 512))
    descs = (src, dnn.MemoryDesc((1024, 512), dnn.f32, "any"), dst)
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=2 << 20, machine="zen3")
    plan = dnn.primitive_desc(dnn.MatMul(*descs), engine=engine).plan
    assert plan.scratch_bytes["packed src"] == 4 * (63 * 1040 + 1024)
    return plan


def test_scratch_may_have_gaps(planned_isa: str) -> None:
    gaps(planned_isa).check()


def test_gaps_are_not_read(planned_isa: str) -> None:
    plan = gaps(planned_isa)
    with pytest.raises(PlanError, match="phase 0: element 1024 of packed src is never written"):
        edited(plan, move(0, 4, record=0), phase=1).check()
    with pytest.raises(PlanError, match=r"phase 0: element \d+ of packed src is never written"):
        edited(plan, lambda records: records[1:]).check()


def test_what_one_thread_runs_needs_no_barrier(planned_isa: str) -> None:
    """A range of channels that continues another one reads copies that the same thread has made."""
    plan = proven(in_ranges("mb1ic33ih6iw7oc17oh6ow7kh3kw3ph1pw1 nchw any bias relu"), planned_isa).plan
    assert any(phase.continues for phase in plan.phases) and "reorder" in plan.implementation
    alone = tuple(replace(phase, alone=True) for phase in plan.phases)
    replace(plan, phases=alone).check()
    shared = with_phase(replace(plan, phases=alone), 1, replace(alone[1], alone=False, independent=True))
    with pytest.raises(PlanError, match="without a barrier in between"):
        shared.check()


@pytest.mark.parametrize("strides", [(6, 1), (1, 70)])
def test_nothing_between_the_elements_of_an_input_is_read(planned_isa: str, strides: tuple[int, int]) -> None:
    """A plan for a dense column, or dense rows, that is said to be for others."""
    engine = dnn.Engine(isa=planned_isa, threads=1)
    src, dst = dnn.MemoryDesc((64, 64), dnn.f32, "ab"), dnn.MemoryDesc((64, 1), dnn.f32, "ab")
    if strides == (6, 1):
        name, apart = "weights", dnn.MemoryDesc((64, 1), dnn.f32, strides=strides)
        plan = dnn.primitive_desc(dnn.MatMul(src, dst, dst), engine=engine).plan
    else:
        name, apart = "src", dnn.MemoryDesc((64, 64), dnn.f32, strides=strides)
        relu = dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", src, src)
        plan = dnn.primitive_desc(relu, engine=engine).plan
    plan.check()
    with pytest.raises(PlanError, match=f"bytes between the elements of {name} are read, at "):
        replace(plan, tensors={**plan.tensors, name: apart}, in_place=()).check()
