"""The kernels of this process: generated where memory, packs and disk have none; written where a dump is asked for."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from asmdnn import environment
from asmdnn.forking import importing
from asmdnn.generators.contract import Spec
from asmdnn.isa.peachpy_version import PEACHPY_VERSION
from asmdnn.jit.kernels import KernelCache, LoadedKernel
from asmdnn.jit.store import default_store
from asmdnn.planning.plan import Plan

if TYPE_CHECKING:  # what comes from a pack, or from the cache on disk, runs without the generators
    from asmdnn.generators.executor import ExecutorSpec


def generate(spec: Spec) -> bytes:
    """The machine code of a spec; on any machine, whatever the spec's ISA."""
    with importing():
        from asmdnn.isa.assembler import Assembler

    asm = Assembler(spec.name)
    spec.generate(asm)
    return asm.finish().data


@cache
def kernel_cache() -> KernelCache[Any]:
    """The process's kernels; on disk in ASMDNN_CACHE_DIR unless ASMDNN_CACHE=0; also written to ASMDNN_DUMP if that is
    set.  All three are read at the first use."""
    return KernelCache(generate, default_store(), version=PEACHPY_VERSION, notice=_dumper())


def _dumper() -> Callable[[Any, LoadedKernel], None] | None:
    directory = environment.path(environment.DUMP)
    if directory is None:
        return None
    with importing():
        from asmdnn.dump.run import RunDump  # not above: few runs need it

    dump = RunDump(directory)
    return lambda spec, kernel: dump.write(spec, kernel.code)


def executor_spec(plan: Plan) -> "ExecutorSpec":
    """The executor that walks the plan."""
    with importing():
        from asmdnn.generators.executor import ExecutorSpec

    return ExecutorSpec(arguments=plan.arguments)
