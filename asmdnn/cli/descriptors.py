"""From a case of any driver to its primitive descriptor: what the commands that look at plans start from."""

import asmdnn as dnn
from asmdnn.cli.driver import AnyCase
from asmdnn.errors import Unimplemented


def primitive_desc_of(case: AnyCase, engine: dnn.Engine) -> dnn.PrimitiveDesc:
    """Plan a case; works for ISA levels that this machine lacks.  Raises AsmdnnError."""
    work = case.driver.work(case)
    if isinstance(work, str):
        raise Unimplemented(f"problem '{case.problem}': {work}")
    desc, attr = work.describe()
    return dnn.primitive_desc(desc, attr=attr, engine=engine)
