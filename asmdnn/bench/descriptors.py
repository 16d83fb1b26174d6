"""From a case of any driver to its primitive descriptor: what the commands that look at plans start from."""

from typing import Final, cast

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase
from asmdnn.errors import Unimplemented
from asmdnn.isa.cpu import supported_isas
from asmdnn.isa.levels import AVX512_CORE, AVX512_CORE_FP16, isa_of
from asmdnn.types import IsaName

# L2 a core of the CPUs that brought a level: Skylake-SP, Sapphire Rapids.  Plans depend on it.
TYPICAL_L2_BYTES: Final = {AVX512_CORE.rank: 1 << 20, AVX512_CORE_FP16.rank: 2 << 20}


def primitive_desc_of(case: AnyCase, engine: dnn.Engine) -> dnn.PrimitiveDesc:
    """Plan a case; works for ISA levels that this machine lacks.  Raises AsmdnnError."""
    work = case.driver.work(case)
    if isinstance(work, str):
        raise Unimplemented(f"problem '{case.problem}': {work}")
    desc, attr = work.describe()
    return dnn.primitive_desc(desc, attr=attr, engine=engine)


def planning_engine(isa: str, l2_bytes: int = 0, threads: int = 1) -> dnn.Engine:
    """An engine of a level that need not be this machine's: its L2 is then that of a CPU which has the level.

    Raises InvalidArguments for an unknown level; Unimplemented without a level on a CPU that has none.
    """
    if isa and not l2_bytes and isa_of(isa) not in supported_isas():
        rank = isa_of(isa).rank
        l2_bytes = max((size for lowest, size in TYPICAL_L2_BYTES.items() if lowest <= rank), default=0)
    return dnn.Engine(isa=cast(IsaName, isa), threads=threads, l2_bytes=l2_bytes)
