"""From a case of any driver to its primitive descriptor: what the commands that look at plans start from."""

from typing import Any, cast

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, Work
from asmdnn.errors import Unimplemented
from asmdnn.isa.levels import isa_of
from asmdnn.planning.host import supported_isas
from asmdnn.planning.machine import typical_machine
from asmdnn.types import IsaName


def work_or_reason(case: AnyCase) -> Work[Any] | str:
    """The case made concrete, or why there is nothing to plan: for commands that go on without it."""
    try:
        return case.driver.work(case)
    except Unimplemented as error:
        return str(error)


def primitive_desc_of(case: AnyCase, engine: dnn.Engine) -> dnn.PrimitiveDesc:
    """Plan a case; works for ISA levels that this machine lacks.  Raises AsmdnnError."""
    work = case.driver.work(case)
    if isinstance(work, str):
        raise Unimplemented(f"problem '{case.problem}': {work}")
    desc, attr = work.describe()
    return dnn.primitive_desc(desc, attr=attr, engine=engine)


def planning_engine(isa: str, l2_bytes: int = 0, threads: int = 1) -> dnn.Engine:
    """An engine of a level that need not be this machine's: the machine is then a typical one that has the level.

    Raises InvalidArguments for an unknown level; Unimplemented without a level on a CPU that has none.
    """
    foreign = bool(isa) and isa_of(isa) not in supported_isas()
    machine = typical_machine(isa).name if foreign else ""
    return dnn.Engine(isa=cast(IsaName, isa), threads=threads, l2_bytes=l2_bytes, machine=machine)
