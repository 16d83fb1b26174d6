"""A reorder into the format that Winograd's convolution reads: weights in panels, then their transform."""

from math import prod

import numpy as np

from asmdnn.generators.winograd.weights import TAPS, WeightsTransformSpec
from asmdnn.isa.vectors import NARROWEST, f32_widths, lanes_of, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.memory.transformed import GROUPS
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, records_of, views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.types import f32

LEAST_LANES = lanes_of(NARROWEST)  # that panels are a multiple of
PANELS = "panels of weights"  # scratch


def add_transform(assembly: Assembly, source: tuple[str, MemoryDesc], target: tuple[str, WinogradDesc]) -> None:
    """Phases that bring weights, a buffer and its format, into another one."""
    (src, plain), (dst, transformed) = source, target
    panels = MemoryDesc(plain.dims, f32, transformed.storage.tag)
    if plain != panels:
        assembly.add(reorder_phases(plain, panels, (src, PANELS), assembly.tuning, isa=assembly.isa))
        assembly.scratch[PANELS] = panels.size_bytes
        src = PANELS
    isa = level_of(transformed, assembly.isa)
    assembly.add([transform_phase(transformed, (src, dst), assembly.tuning, isa)])


def level_of(desc: WinogradDesc, isa: str) -> str:
    """That of the widest vectors that panels consist of: each has as many instructions."""
    return [level for level in f32_widths(isa) if elements_of_tap(desc) % lanes_of(level) == 0][-1]


def elements_of_tap(desc: WinogradDesc) -> int:
    """Of a panel."""
    *_, ic = (desc.adjoint if desc.turned else desc).dims[:-2]
    together = GROUPS[desc.dtype]
    return -(-ic // together) * together * desc.panel


def transform_phase(desc: WinogradDesc, buffers: tuple[str, str], tuning: Tuning, isa: str) -> Phase:
    """Panels in buffers[0], transformed into buffers[1]."""
    lanes, (*groups, oc, _) = lanes_of(isa), (desc.adjoint if desc.turned else desc).dims[:-2]
    elements = elements_of_tap(desc)
    vectors, tap_bytes, frequency_bytes = elements // lanes, f32.size_bytes * elements, desc.dtype.size_bytes * elements
    frequencies = prod(desc.storage.dims[-2:])
    most = tuning.winograd.weights_vectors
    first = np.arange(0, vectors, most)
    sizes, kernel = np.unique(np.minimum(most, vectors - first), return_inverse=True)
    # Turned taps are read from the end, beginning with the last one.
    step, begin = (-tap_bytes, (TAPS**2 - 1) * tap_bytes) if desc.turned else (tap_bytes, 0)
    specs = tuple(
        WeightsTransformSpec(
            isa=isa,
            m=desc.m,
            vectors=int(size),
            tap_bytes=step,
            frequency_bytes=frequency_bytes,
            dtype=desc.dtype,
        )
        for size in sizes
    )
    panel = np.arange(prod(groups) * -(-oc // desc.panel))[:, None]
    source = (panel * TAPS**2 * tap_bytes + vector_bytes(isa) * first).ravel()
    target = (panel * frequencies * frequency_bytes + desc.dtype.size_bytes * lanes * first).ravel()
    columns = {"weights": begin + source, "transformed": target}
    kernels = np.tile(kernel, len(panel))
    each = {2: tuning.winograd.weights2_cycles, 4: tuning.winograd.weights4_cycles}[desc.m]
    cycles = (tuning.moves.call_cycles + each * sizes[kernels]).astype(np.int32)
    return Phase(specs, views(buffers), records_of(("weights", "transformed"), columns, kernels), cycles)
