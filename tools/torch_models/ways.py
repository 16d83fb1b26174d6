"""The ways in which a torch module runs, and what the first call by each takes."""

import time
from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

import asmdnn as dnn

Call = Callable[..., Any]
WAYS: Final = ("eager", "inductor", "compile", "from_torch")


def call_by(way: str, module: Any, inputs: tuple[Any, ...], threads: int) -> Call:
    """A function of the module's inputs; from_torch traces here, compilers trace in the first call."""
    import torch

    if way == "eager":
        eager: Call = module
        return eager
    if way == "from_torch":
        return dnn.from_torch(module, inputs, engine=dnn.Engine(threads=threads))
    torch._dynamo.reset()
    if way == "inductor":
        inductor: Call = torch.compile(module)
        return inductor
    options: dict[str, Any] = {"engine": dnn.Engine(threads=threads)}
    compiled: Call = torch.compile(module, backend="asmdnn", options=options)
    return compiled


def relative_error(found: Any, wanted: Any) -> float:
    """The largest difference of two tensors, of the largest element."""
    return float((found - wanted).abs().max() / wanted.abs().max())


def first_call(way: str, module: Any, inputs: tuple[Any, ...]) -> dict[str, float]:
    """CPU seconds up to the first result by from_torch or the backend, on one thread, and those that torch traces."""
    import torch

    from asmdnn.aten import backend
    from asmdnn.aten import module as modules

    traced: list[float] = []
    whole = modules.export_of

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        exported = whole(*arguments, **options)
        traced.append(time.process_time() - start)
        return exported

    with patch.object(modules, "export_of", timed), patch.object(backend, "export_of", timed):
        if way == "compile":  # what Dynamo takes by itself
            start = time.process_time()
            torch.compile(module, backend="eager")(*inputs)
            traced.append(time.process_time() - start)
        start = time.process_time()
        call_by(way, module, inputs, 1)(*inputs)
        total = time.process_time() - start
    return {"total": total, "own": max(total - sum(traced), 0.0)}
