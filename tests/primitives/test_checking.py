"""ASMDNN_CHECK=1: wrong plans and stray padding are found, what is right passes; without it nothing is checked."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.checking import PaddingError, is_checking
from asmdnn.primitives.core.descriptor import PrimitiveDesc

DIMS = (2, 17, 3, 1)
PLAIN, BLOCKED = (dnn.MemoryDesc(DIMS, dnn.f32, tag) for tag in ("nchw", "nChw8c"))


def reorder_pd() -> PrimitiveDesc:
    return dnn.primitive_desc(dnn.Reorder(PLAIN, BLOCKED), engine=dnn.Engine(threads=1))


def without_padding(pd: PrimitiveDesc) -> PrimitiveDesc:
    """The same, but with records that leave the last channel block alone: its padding keeps what was there."""
    phase = pd.plan.phases[0]
    end = 4 * BLOCKED.offset((0, 16, 0, 0))
    kept = phase.records[phase.records[:, 2] < end]
    plan: Plan = replace(pd.plan, phases=(replace(phase, records=kept, cycles=phase.cycles[: len(kept)]),))
    return PrimitiveDesc(pd.desc, pd.attr, pd.engine, plan)


def memories() -> dict[str, dnn.Memory]:
    return {"src": dnn.Memory(PLAIN), "dst": dnn.Memory(BLOCKED)}


@pytest.mark.parametrize(("value", "expected"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_the_switch(monkeypatch: pytest.MonkeyPatch, value: str | None, expected: bool) -> None:
    monkeypatch.delenv("ASMDNN_CHECK", raising=False)
    if value is not None:
        monkeypatch.setenv("ASMDNN_CHECK", value)
    assert is_checking() is expected


def test_the_first_index_in_the_padding() -> None:
    memory = dnn.Memory(BLOCKED)
    assert memory.first_stray() is None
    memory.array[BLOCKED.offset((1, 16, 2, 0))] = 5
    assert memory.first_stray() is None
    for index in ((1, 23, 0, 0), (1, 17, 2, 0), (1, 18, 0, 0)):
        memory.array[BLOCKED.offset(index)] = np.nan
    assert memory.first_stray() == (1, 17, 2, 0)


@pytest.mark.isa("avx2")
def test_a_right_primitive_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CHECK", "1")
    primitive, arguments = dnn.Primitive(reorder_pd()), memories()
    arguments["src"].array[:] = 1
    arguments["dst"].array[:] = np.nan
    primitive.execute(**arguments)
    arguments["dst"].array[:] = np.nan
    primitive.bind(**arguments)()
    assert arguments["dst"].numpy().min() == 1


@pytest.mark.isa("avx2")
def test_a_wrong_plan_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASMDNN_CHECK", raising=False)
    pd = without_padding(reorder_pd())
    dnn.Primitive(pd)
    monkeypatch.setenv("ASMDNN_CHECK", "1")
    with pytest.raises(PlanError, match=r"element \d+ of dst is never written"):
        dnn.Primitive(pd)


@pytest.mark.isa("avx2")
def test_stray_padding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CHECK", "1")
    monkeypatch.setattr(Plan, "check", lambda plan: None)
    primitive, arguments = dnn.Primitive(without_padding(reorder_pd())), memories()
    run = primitive.bind(**arguments)
    run()
    arguments["dst"].array[BLOCKED.offset((0, 20, 1, 0))] = 7
    says = r"transposes:\w+ left dst, Memory f32 2x17x3x1 nChw8c at 0x\w+, with padding .* at index \(0, 20, 1, 0\)"
    with pytest.raises(PaddingError, match=says):
        run()
    with pytest.raises(PaddingError, match=says):
        primitive.execute(**arguments)


@pytest.mark.isa("avx2")
def test_without_it_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASMDNN_CHECK", raising=False)
    primitive, arguments = dnn.Primitive(without_padding(reorder_pd())), memories()
    arguments["dst"].array[BLOCKED.offset((0, 20, 1, 0))] = 7
    primitive.bind(**arguments)()
    primitive.execute(**arguments)
