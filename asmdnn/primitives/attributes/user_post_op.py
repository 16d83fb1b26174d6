"""Post-ops that the user writes as a Python function of x: traced once into an expression, then part of the kernel."""

from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions import postops
from asmdnn.generators.functions.expression import Builder, Term, TraceError
from asmdnn.generators.functions.postops import ExpressionOp, Operand
from asmdnn.generators.functions.program import Program
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.primitives.attributes.numbers import finite, tensor
from asmdnn.records import dataclass, field
from asmdnn.types import DATA_TYPES

PACKAGE = str(Path(__file__).parents[2])
FORBIDDEN = {"print", "input", "open", "exec", "eval", "breakpoint"}


@dataclass(frozen=True, slots=True, init=False)
class PostOp:
    """dst = function(op, **arguments), the function being written with operators and dnn.where, dnn.exp, ...

    An argument is a number, which becomes a constant; or a tensor whose every dim is dst's or 1, as a MemoryDesc, a
    Memory or an f32 array.  As the chain's number i, tensor `c` is the argument "c_i" of the primitive; if it was given
    with its data, these are the default.  Two post-ops are equal if they are the same expression of the same tensors.
    Raises InvalidArguments, with the function's file and line, for what cannot be traced: branches on values, output,
    numpy's and math's functions, and arguments that have no influence.
    """

    program: Program
    names: tuple[str, ...]
    descs: tuple[MemoryDesc, ...]
    function: Callable[..., Any] = field(compare=False, repr=False)
    numbers: dict[str, float] = field(compare=False, repr=False)
    data: dict[str, Memory] = field(compare=False, repr=False)
    _hash: int = field(compare=False, repr=False)  # of a program, too long to be computed with every call
    kind = "user"

    def __init__(self, function: Callable[..., Any], **arguments: Any) -> None:
        if not callable(function):
            raise InvalidArguments(f"PostOp's function must be callable, not {shown(function)}")
        numbers: dict[str, float] = {}
        descs: dict[str, MemoryDesc] = {}
        data: dict[str, Memory] = {}
        for name, value in arguments.items():
            if isinstance(value, Real) and not isinstance(value, bool):
                numbers[name] = finite(name, value)  # type: ignore[arg-type]
                continue
            if isinstance(value, np.ndarray):
                value = Memory.from_array(value)
            if isinstance(value, Memory):
                data[name] = value
                value = value.desc
            descs[name] = tensor(f"PostOp's {name}", value, DATA_TYPES.values())
        names = tuple(descs)
        program = trace(function, names, lambda x, *t: function(x, **dict(zip(names, t, strict=True)), **numbers))
        self._fill(program, function, descs, numbers, data)

    def _fill(
        self,
        program: Program,
        function: Callable[..., Any],
        descs: Mapping[str, MemoryDesc],
        numbers: dict[str, float],
        data: dict[str, Memory],
    ) -> None:
        fields = {
            "program": program, "names": tuple(descs), "descs": tuple(descs.values()), "function": function,
            "numbers": numbers, "data": data, "_hash": hash((program, *descs.items())),
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self._hash

    @property
    def tensors(self) -> dict[str, MemoryDesc]:
        return dict(zip(self.names, self.descs, strict=True))

    @property
    def further(self) -> int:
        """How many values it stores beside its result: those that networks make may."""
        return len(self.program.results) - 1

    def on_registers(self, *operands: Operand, result: int = 0) -> postops.PostOp:
        return ExpressionOp(self.program.only(result), operands)

    def reference(self, x: Any, **tensors: Any) -> Any:
        """The function on numpy arrays, with the constants that it was traced with."""
        return self.function(x, **self.numbers, **tensors)


def traced_before(program: Program, function: Callable[..., Any], descs: Mapping[str, MemoryDesc]) -> PostOp:
    """The post-op of a function whose program is known; its arguments are these tensors."""
    found = PostOp.__new__(PostOp)
    found._fill(program, function, descs, {}, {})
    return found


def trace(function: Callable[..., Any], tensors: tuple[str, ...], call: Callable[..., Any] | None = None) -> Program:
    """The function's expression of x and the tensors; `call` is the function with its arguments in that order.

    Raises InvalidArguments, which says where it went wrong.
    """
    code = getattr(function, "__code__", None)
    if code is not None:
        check_names(code)
    build = Builder(1 + len(tensors))
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
    try:
        result = (call or function)(*build.inputs)
        if not isinstance(result, Term):
            raise TraceError(f"the function returns {shown(result)}, it must return what it computes from x")
        program = build.finish(result)
    except Exception as error:  # whatever the user's code raises
        what = str(error) if isinstance(error, TraceError) else f"{type(error).__name__}: {error}"
        if "__array_ufunc__" in what:
            what = "numpy's functions cannot compute with a traced value: use the one of the same name in dnn"
        raise InvalidArguments(f"{place_of(error.__traceback__) or where}: {what}") from error
    used = {step.immediate for step in program.steps if step.op == "input"}
    unused = [name for i, name in enumerate(("x", *tensors)) if i not in used]
    if unused:
        raise InvalidArguments(f"{where}: the result does not depend on {unused[0]}: leave it out or use it")
    return program


def check_names(code: CodeType) -> None:
    """No input or output: it would happen while the kernel is made, once, and not when it runs."""
    found = FORBIDDEN & set(code.co_names)
    if found:
        name = min(found)
        raise InvalidArguments(
            f"{code.co_filename}:{code.co_firstlineno}: the function uses {name}(), which would run once, while the "
            "kernel is made: compute the result from the arguments alone"
        )


def place_of(traceback: TracebackType | None) -> str:
    """file:line of the innermost frame outside this package; "" if there is none."""
    place = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(PACKAGE):
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
