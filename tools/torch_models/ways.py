"""The ways in which a torch module runs, and what the first call by each takes."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import asmdnn as dnn
from asmdnn.aten import backend, tracing

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
    """CPU seconds up to the first result on one thread, those of this package, without what torch traces, and those of
    the second call.  Garbage collections are left out, which walk torch's objects whenever they fall due."""
    with (
        Collections.seen(),
        timed(tracing, "export_of") as traced,
        timed(backend.CompiledGraph, "__call__") as called,
    ):
        start = Collections.clock()
        call = call_by(way, module, inputs, 1)
        call(*inputs)
        total = Collections.clock() - start
    whole = sum(called) if way == "compile" else total
    start = time.process_time()
    call(*inputs)
    return {"total": total, "own": whole - sum(traced), "again": time.process_time() - start}


class Collections:
    """Those of Python's garbage, in CPU seconds."""

    seconds = 0.0

    @classmethod
    def clock(cls) -> float:
        """CPU seconds of the process without them."""
        return time.process_time() - cls.seconds

    @classmethod
    @contextmanager
    def seen(cls) -> Iterator[None]:
        """Inside, they are counted."""

        def noticed(phase: str, _: object) -> None:
            cls.seconds += time.process_time() * (1 if phase == "stop" else -1)

        gc.callbacks.append(noticed)
        try:
            yield
        finally:
            gc.callbacks.remove(noticed)


@contextmanager
def timed(owner: Any, name: str) -> Iterator[list[float]]:
    """The CPU seconds of each call of a function or method."""
    seconds: list[float] = []
    function = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        start = Collections.clock()
        try:
            return function(*arguments, **options)
        finally:
            seconds.append(Collections.clock() - start)

    with patch.object(owner, name, call):
        yield seconds
