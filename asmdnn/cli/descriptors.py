"""From a case of any driver to its primitive descriptor: what the commands that look at plans start from."""

from collections.abc import Sequence
from pathlib import Path

import asmdnn as dnn
from asmdnn.cli.convolution import descriptor, layouts, unsupported
from asmdnn.cli.options import Case, Reader
from asmdnn.errors import InvalidArguments, Unimplemented


def primitive_desc_of(case: Case, engine: dnn.Engine) -> dnn.PrimitiveDesc:
    """Plan a case; works for ISA levels that this machine lacks.  Raises AsmdnnError."""
    reason = unsupported(case.problem)
    if reason:
        raise Unimplemented(f"problem '{case.problem}': {reason}")
    return descriptor(case, layouts(case), engine)


def one_case(command: str, words: Sequence[str]) -> Case:
    """The one problem that benchdnn's words describe.  Raises InvalidArguments for none and for several."""
    reader = Reader()
    reader.read(words, Path.cwd())
    if reader.json:
        raise InvalidArguments(f"{command}: --json={reader.json} is not an option here: write --json for all on stdout")
    if len(reader.cases) != 1:
        raise InvalidArguments(
            f"{command}: takes one problem, {len(reader.cases)} are given: write one such as mb1ic64ih56oc64oh56kh3ph1"
        )
    return reader.cases[0]
