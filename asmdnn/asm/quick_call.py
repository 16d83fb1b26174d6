"""A call with the arguments that most calls have, checked in one line of Python that is written for the prototype.

It takes arrays of numpy of exactly the pointer's type, ints and floats.  Anything else, and all that is wrong, goes to
the converters, which know DLPack, numpy's integers and what to say.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from asmdnn.asm.converters import dtype_of
from asmdnn.asm.footprint import Reaches
from asmdnn.asm.prototype import CArgument, Prototype
from asmdnn.jit.native import ffi

_REFUSALS: Final = "(BufferError, ValueError, TypeError, ZeroDivisionError)"


def quick_call(
    prototype: Prototype, extents: Reaches, raw: Callable[..., Any], careful: Callable[..., Any]
) -> Callable[..., Any]:
    """`raw` behind checks of its arguments; `careful` is called with those that are not as simple as that."""
    scope: dict[str, Any] = {
        "array": np.ndarray, "from_buffer": ffi.from_buffer, "raw": raw, "careful": careful, "max": max, "min": min,
        "missing": object(),
    }  # fmt: skip
    integers = [argument.name for argument in prototype.arguments if argument.type.is_integer]
    names, checks, passed = [], [], []
    for position, argument in enumerate(prototype.arguments):
        is_size = argument.type.is_integer
        name = f"v{integers.index(argument.name)}" if is_size else f"a{position}"  # as a reach's expression calls them
        names.append(name)
        if argument.type.is_pointer:
            checks.append(_array_check(name, argument, extents, scope))
            written = argument.name in extents[1]
            passed.append(f"from_buffer({name}_type, {name}, {written})")
        elif argument.type.is_float:
            checks.append(f"type({name}) is float")
            passed.append(name)
        else:
            low, high = argument.type.range
            checks.append(f"type({name}) is int and {low} <= {name} <= {high}")
            passed.append(name)
    sizes = [
        f"{extent.expression} <= a{position}.nbytes"
        for position, argument in enumerate(prototype.arguments)
        for side in extents
        if (extent := side.get(argument.name))
    ]
    lines = [
        f"def call({''.join(f'{name}=missing, ' for name in names)}*more):",
        " try:",
        f"  if {' and '.join(['not more', *checks, *sizes])}:",
        f"   return raw({', '.join(passed)})",
        f" except {_REFUSALS}:",
        "  pass",
        f" return careful(*[each for each in ({''.join(f'{name}, ' for name in names)}*more,) if each is not missing])",
    ]
    exec("\n".join(lines), scope)
    found: Callable[..., Any] = scope["call"]
    return found


def _array_check(name: str, argument: CArgument, extents: Reaches, scope: dict[str, Any]) -> str:
    if all(argument.name not in side for side in extents):
        return "False"  # no size is stated, which `careful` refuses
    dtype = dtype_of(argument.type.item)
    item = "char" if argument.type.item == "void" else argument.type.item
    scope[f"{name}_type"], scope[f"{name}_dtype"] = ffi.typeof(f"{item}[]"), dtype
    return f"type({name}) is array" + (f" and {name}.dtype is {name}_dtype" if dtype is not None else "")
