"""Every public callable, found in the package: what is added to it is tested without being named here."""

import enum
import inspect
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import asmdnn as dnn
from asmdnn.primitives.attributes.functions import FUNCTIONS

# Nobody passes anything to these: types that only the library makes.
MADE_BY_US = {
    "DataType", "MemoryReport", "Network", "OpenNetwork", "PrimitiveDesc", "Refusal", "TorchNetwork", "TrainingStep"
}  # fmt: skip

# These need a package that a machine may lack: their tests have junk for them.
OPTIONAL = () if find_spec("torch") else ("from_torch", "TorchNetwork.load_state_dict", "TorchNetwork.run")

# Methods that planners, drivers, fusion and training call, on values that exist; they check nothing.
FOR_THE_LIBRARY = {
    "FORWARD", "changed", "check_compensation", "complete", "letters", "move", "moved", "numbers", "on_registers",
    "planned", "rate", "reference", "refusal", "result_dims", "runs", "settings", "single", "taps", "with_formats",
}  # fmt: skip


def public_names() -> Iterator[tuple[str, Any]]:
    """The names of the package, and of its public modules."""
    for name in dnn.__all__:
        value = getattr(dnn, name)
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{each}", getattr(value, each)) for each in value.__all__)
        else:
            yield name, value


def takes_arguments(function: Callable[..., Any], is_bound: bool) -> bool:
    return len(inspect.signature(function).parameters) > (not is_bound)


def public_callables() -> dict[str, Callable[..., Any]]:
    """Functions and classes by name: "MemoryDesc", "ops.matmul".

    Not numpy's functions under another name, which raise numpy's errors, enumerations and classes of errors.
    """
    found = {}
    for name, value in public_names():
        if name in MADE_BY_US or name in OPTIONAL or name in FUNCTIONS or not callable(value):
            continue
        if isinstance(value, type) and issubclass(value, BaseException | enum.Enum):
            continue
        if takes_arguments(value, is_bound=True):
            found[name] = value
    return found


def public_methods() -> list[str]:
    """Methods that take arguments beside their object, of all public classes: "MemoryDesc.offset"."""
    kinds = {name: value for name, value in public_names() if isinstance(value, type)}
    return [
        f"{name}.{method}"
        for name, kind in kinds.items()
        if not issubclass(kind, BaseException | enum.Enum | int | str)
        for method, function in inspect.getmembers(kind, callable)
        if not method.startswith("_")
        and f"{name}.{method}" not in OPTIONAL
        and method not in FOR_THE_LIBRARY
        and takes_arguments(function, inspect.ismethod(function))
    ]
