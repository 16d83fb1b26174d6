"""The spec corpus: for every kernel family the cases that its code distinguishes, and the edges of each.

A line here brings correctness, guard-page, footprint, feature, ABI, determinism and golden tests.
"""

from collections.abc import Iterator
from functools import lru_cache

from asmdnn.corpus.conv import CONV_LEVELS, FAMILIES
from asmdnn.corpus.copies import (
    REORDER_ISA,
    compensation_specs,
    conversion_specs,
    copy_specs,
    pixel_specs,
    quotient_specs,
    transpose_specs,
)
from asmdnn.corpus.elementwise import MAPS, chains
from asmdnn.corpus.low_precision import LEVELS_OF_TYPES, LOW_PRECISION_FAMILIES, conv_tiles
from asmdnn.corpus.matmul import MATMUL_FAMILIES
from asmdnn.corpus.shuffle import SHUFFLE_ISA, SHUFFLES
from asmdnn.generators.dot import conv_shape, matmul_shape
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.dots import DotsSpec
from asmdnn.generators.dot.gemv import GemvSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.outer import OuterSpec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.functions.postops import MAX_POST_OPS
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.generators.move.compensation import CompensationSpec
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_pixels import ConvertDeinterleaveSpec, ConvertInterleaveSpec
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_rows import ElementsSpec, RowsSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.generators.probes.bandwidth import BandwidthSpec, ClockSpec
from asmdnn.generators.probes.peak import PeakSpec

Pixels = ConvertInterleaveSpec | ConvertDeinterleaveSpec
ReorderSpec = RowsSpec | TransposeSpec | ConvertSpec | ConvertTransposeSpec | Pixels | QuotientSpec | CompensationSpec
ProductSpec = MatmulTileSpec | GemvSpec | DotsSpec | OuterSpec
KernelSpec = ConvTileSpec | ElementwiseSpec | ProductSpec | ReorderSpec | ShuffleSpec | ElementsSpec
CHAIN_TENSORS = ("src_scales", "weights_scales", "bias", "dst_scales")  # that attributes bring beside the post-ops'
Spec = KernelSpec | ExecutorSpec | PeakSpec | BandwidthSpec | ClockSpec


@lru_cache
def families() -> dict[str, tuple[KernelSpec, ...]]:
    """The kernels that work on buffers and claim a footprint, by what they are there for."""
    found: dict[str, tuple[KernelSpec, ...]] = {
        f"conv-{name}-{isa}": tuple(family(isa)) for isa in CONV_LEVELS for name, family in FAMILIES.items()
    }
    found |= {f"conv-chains-{isa}": tuple(chains(isa)) for isa in CONV_LEVELS}
    found |= {f"map-{name}-{isa}": tuple(family(isa)) for isa in CONV_LEVELS for name, family in MAPS.items()}
    for isa in CONV_LEVELS:
        found |= {f"matmul-{name}-{isa}": tuple(family(isa)) for name, family in MATMUL_FAMILIES.items()}
    for types, isa in LEVELS_OF_TYPES:
        of_types = LOW_PRECISION_FAMILIES.items()
        found |= {f"matmul-{name}-{types}-{isa}": tuple(family(isa, types)) for name, family in of_types}
        found[f"conv-{types}-{isa}"] = tuple(conv_tiles(isa, types))
    found |= {f"shuffle-{name}-{SHUFFLE_ISA}": tuple(family()) for name, family in SHUFFLES.items()}
    return found | {
        f"copy-{REORDER_ISA}": tuple(copy_specs()),
        f"transpose-{REORDER_ISA}": tuple(transpose_specs()),
        f"convert-{REORDER_ISA}": tuple(conversion_specs()),
        f"pixels-{REORDER_ISA}": tuple(pixel_specs()),
        f"quotient-{REORDER_ISA}": tuple(quotient_specs()),
        f"compensation-{REORDER_ISA}": tuple(compensation_specs()),
    }


@lru_cache
def kernel_specs() -> tuple[KernelSpec, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys(spec for family in families().values() for spec in family))


def executors() -> Iterator[ExecutorSpec]:
    """Of every number of arguments that a chain of post-ops with one tensor each can bring.

    PostOp takes several tensors; but from 17 arguments on no offset or size in an executor fits a byte, and all are
    encoded alike.
    """
    most = max(len(conv_shape.ARGUMENTS), len(matmul_shape.ARGUMENTS)) + len(CHAIN_TENSORS) + MAX_POST_OPS
    return map(ExecutorSpec, range(1, most + 1))


@lru_cache
def corpus() -> tuple[Spec, ...]:
    """Every spec of the project's generators."""
    ceilings = (spec(isa) for spec in (PeakSpec, BandwidthSpec) for isa in CONV_LEVELS)
    return (*kernel_specs(), *executors(), *ceilings, ClockSpec())
