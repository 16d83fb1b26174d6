"""The spec corpus: for every kernel family the cases that its code distinguishes, and the edges of each.

Every other module of this package states its `FAMILIES`: by name, what yields the specs.  A spec there brings
correctness, guard-page, footprint, feature, ABI, determinism and golden tests, the proof and the dump.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from asmdnn import corpus as package
from asmdnn.corpus.conv import CONV_LEVELS
from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.contract import KernelSpec, Spec
from asmdnn.generators.dot import conv_shape, matmul_shape
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.functions.postops import MAX_POST_OPS
from asmdnn.generators.probes.bandwidth import BandwidthSpec, ClockSpec
from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.levels import AVX2_VNNI, AVX512_CORE_AMX, AVX512_CORE_BF16, AVX512_CORE_FP16, AVX512_CORE_VNNI
from asmdnn.isa.vectors import vector_class

Families = dict[str, Callable[[], Iterable[KernelSpec]]]
CHAIN_TENSORS = ("src_scales", "weights_scales", "bias", "dst_scales")  # that attributes bring beside the post-ops'


@lru_cache
def families() -> dict[str, tuple[KernelSpec, ...]]:
    """The kernels that work on buffers and claim a footprint, by what they are there for."""
    return {name: tuple(specs()) for stated in stated_families() for name, specs in stated.items()}


def stated_families() -> Iterator[Families]:
    """What every file of the corpus states, but for this one."""
    for name in files():
        yield importlib.import_module(f"{package.__name__}.{name}").FAMILIES


def files() -> list[str]:
    """The files of the corpus that state families."""
    return sorted({module.name for module in pkgutil.iter_modules(package.__path__)} - {"families"})


@lru_cache
def specs_of(file: str) -> tuple[Spec, ...]:
    """What a file states, each spec once; of this one, `families`, what belongs to no family."""
    if file == "families":
        ceilings = (spec(isa=isa) for spec in (PeakSpec, BandwidthSpec) for isa in CONV_LEVELS)
        return (*executors(), *ceilings, *dot_peaks(), ClockSpec())
    stated: Families = importlib.import_module(f"{package.__name__}.{file}").FAMILIES
    return tuple(dict.fromkeys(spec for specs in stated.values() for spec in specs()))


@lru_cache
def kernel_specs() -> tuple[KernelSpec, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys(spec for family in families().values() for spec in family))


def dot_peaks() -> Iterator[PeakSpec]:
    """Of the multiply-adds that kernels have beside FMA, on the lowest level of each."""
    for name in ("VPMADDWD", "VPMADDUBSW", "VPMULLD"):
        yield from (PeakSpec(isa=isa, instruction=name) for isa in CONV_LEVELS)
    yield PeakSpec(isa=AVX2_VNNI.name, instruction="VPDPBUSD_VEX")
    yield PeakSpec(isa=AVX512_CORE_VNNI.name, instruction="VPDPBUSD")
    yield PeakSpec(isa=AVX512_CORE_BF16.name, instruction="VDPBF16PS")
    yield PeakSpec(isa=AVX512_CORE_FP16.name, instruction="VFMADD231PH")
    for name in ("TDPBF16PS", "TDPBUSD", "TDPBSSD"):
        yield PeakSpec(isa=AVX512_CORE_AMX.name, instruction=name)


def executors() -> Iterator[ExecutorSpec]:
    """Of every number of arguments that a chain of post-ops with one tensor each can bring.

    PostOp takes several tensors; but from 17 arguments on no offset or size in an executor fits a byte, and all are
    encoded alike.
    """
    vectors = max(max(v.most_pixels) for v in map(vector_class, CONV_LEVELS))
    of_tiles = len(conv_shape.ARGUMENTS) + len(conv_shape.vectors_of_dst(vectors))
    most = max(of_tiles, len(matmul_shape.ARGUMENTS)) + len(CHAIN_TENSORS) + MAX_POST_OPS
    return (ExecutorSpec(arguments=arguments) for arguments in range(1, most + 1))


@lru_cache
def corpus() -> tuple[Spec, ...]:
    """Every spec of the project's generators."""
    return (*kernel_specs(), *specs_of("families"))


def matching(pattern: str) -> tuple[Spec, ...]:
    """Those whose names match a pattern of a shell, such as copy_*.  Raises InvalidArguments if there is none."""
    found = tuple(spec for spec in corpus() if fnmatchcase(spec.name, pattern))
    if not found:
        raise InvalidArguments(f"no kernel of the corpus matches {shown(pattern)}: a name is {corpus()[0].name}")
    return found
