"""The ways to compute a pooling, best first: each takes tensors in some formats, checks the windows, adds phases."""

from collections.abc import Callable, Iterable, Mapping
from math import prod
from types import MappingProxyType

from asmdnn.generators.pooling.pixel_words import UNROLLED
from asmdnn.isa.elements import narrowing_level, size_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.pooling.calls import PoolCall, phases_of
from asmdnn.primitives.pooling.formats import format_like
from asmdnn.primitives.pooling.kernels import (
    PoolKernels,
    at_plane_level,
    check_planes,
    index_calls,
    pixel_calls,
    plane_calls,
)
from asmdnn.primitives.pooling.near import with_channels_near
from asmdnn.primitives.pooling.request import PoolRequest
from asmdnn.primitives.pooling.rows import check_rows, row_calls
from asmdnn.primitives.pooling.schedule import planes_for
from asmdnn.primitives.pooling.taken import (
    PLAIN,
    Tensors,
    channels_alone,
    channels_with_indices,
    dense_rows,
    long_rows,
    narrow_channels,
    narrow_planes,
    narrow_rows,
    short_rows,
    typed_rows,
    words,
)
from asmdnn.primitives.pooling.windows import reduced_runs, single_runs, undivided
from asmdnn.records import dataclass, replace
from asmdnn.types import F32_BYTES, f32, s32

OWN = (*PLAIN, "indices")
NO_PLACES: Mapping[str, View] = MappingProxyType({})
REDUCED, PLACES = "rows reduced", "places in rows"  # scratch


@dataclass(frozen=True, slots=True)
class PoolStrategy:
    """formats: of src, dst and indices, as its kernels take them.  check: raises Refused unless it takes the windows.
    add: its phases.  as_bits: what stands for the tensors are words of their bits, which need no reorder."""

    name: str
    formats: Callable[[PoolRequest], Tensors]
    check: Callable[[PoolKernels], None]
    add: Callable[[Assembly, PoolKernels, Tensors], None]
    as_bits: bool = False

    def maker(self, request: PoolRequest, tensors: Tensors) -> PoolKernels:
        """What its kernels have in common."""
        planes = planes_for(tensors["src"], tensors["dst"])
        ending = f"_{request.tensors['src'].dtype}" if self.as_bits else ""
        dtype = tensors["src"].dtype
        streams = dtype == f32 and request.streams(tensors)
        isa = request.isa if request.windows.is_max else narrowing_level(dtype.name, request.engine.isa)
        common = (isa, request.windows, planes, request.chain, streams, request.engine.tuning)
        places = tensors["indices"].dtype.name if "indices" in tensors else s32.name
        return PoolKernels(*common, places=places, of_bytes=ending, dtype=dtype)


def overlap(maker: PoolKernels, most_positions: int) -> bool:
    """Whether windows are large and share most of what they cover, so that one axis after the other is reduced."""
    most = maker.windows.most_inside
    step = max(run.step for run in maker.windows.axes[-1])
    shared = step > 0 and maker.tuning.pooling.overlap * step <= most[-1]
    return prod(most) > most_positions and shared and max(most[:-1], default=1) > 1


def check_overlap(maker: PoolKernels) -> None:
    if not overlap(maker, UNROLLED):
        raise Refused(f"windows have at most {UNROLLED} positions, or share too few of them")


def check_indexed_overlap(maker: PoolKernels) -> None:
    if maker.places != s32.name:
        raise Refused("indices are positions in a window, which one axis alone does not tell")
    if not overlap(maker, maker.tuning.pooling.indexed_positions):
        least = maker.tuning.pooling.indexed_positions
        raise Refused(f"windows have at most {least} positions, or share too few of them")


def check_few(maker: PoolKernels) -> None:
    if overlap(maker, UNROLLED):
        raise Refused(f"windows of more than {UNROLLED} positions share most of them: rows come first")


def check_apart(maker: PoolKernels) -> None:
    """Of types that are rounded: sums of rows would be, too."""
    if overlap(maker, UNROLLED):
        raise Refused(f"windows of more than {UNROLLED} positions share most of them: rows come first, as f32")


def any_windows(_: PoolKernels) -> None:
    """All are taken."""


def add_calls(
    assembly: Assembly,
    calls: Iterable[PoolCall],
    arguments: tuple[str, ...] = PLAIN,
    places: Mapping[str, View] = NO_PLACES,
    places_bytes: int = F32_BYTES,
) -> None:
    """Phases of the calls; `places` says what stands for an argument; places_bytes: of an index."""
    phases, constants = phases_of(list(calls), arguments, assembly.tuning.phases, F32_BYTES // places_bytes)
    own = {name: f"{name} {len(assembly.constants)}" for name in constants}
    assembly.add([phase.on({**places, **{name: View(own[name]) for name in own}}) for phase in phases])
    assembly.constants |= {own[name]: array for name, array in constants.items()}


def add_pixel_calls(assembly: Assembly, calls: Iterable[PoolCall], places: Mapping[str, View] = NO_PLACES) -> None:
    """Phases of calls of kernels of pixels, some of which have words."""
    known = list(calls)
    have_words = any("words" in call.spec.frame for call in known)
    add_calls(assembly, known, (*PLAIN, "words") if have_words else PLAIN, places)


def add_planes(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
    add_calls(assembly, plane_calls(at_plane_level(maker)))


def add_rows(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
    add_calls(assembly, row_calls(maker))


def add_pixels(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
    add_pixel_calls(assembly, pixel_calls(maker, maker.windows.axes))


def add_indexed(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
    add_calls(assembly, index_calls(maker, maker.windows.axes), (*OWN, "first"), places_bytes=size_of(maker.places))


def add_two_steps(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
    """Over all axes but the last one into scratch, and then along it; a mean is a sum until the end, so that it is
    rounded once."""
    src, dst = tensors["src"], tensors["dst"]
    reduced = format_like(src, MemoryDesc((*dst.dims[:-1], src.dims[-1]), f32, "any"))
    first = replace(maker, planes=planes_for(src, reduced), chain=(), streams=False)
    second = replace(maker, planes=planes_for(reduced, dst))
    *outer, along_last = maker.windows.axes
    sums = [undivided(runs) for runs in outer]
    calls = pixel_calls(first, [*sums, single_runs(src.dims[-1])])
    add_pixel_calls(assembly, calls, {"dst": View(REDUCED)})
    calls = pixel_calls(second, [*map(reduced_runs, sums if maker.windows.is_max else outer), along_last])
    add_pixel_calls(assembly, calls, {"src": View(REDUCED)})
    assembly.scratch[REDUCED] = reduced.size_bytes


def add_indexed_steps(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
    """Along the last axis into scratch, with places, and then over the others: of equal numbers the first one stays."""
    src, dst = tensors["src"], tensors["dst"]
    reduced = format_like(src, MemoryDesc((*src.dims[:-1], dst.dims[-1]), f32, "any"))
    first = replace(maker, planes=planes_for(src, reduced), streams=False)
    second = replace(maker, planes=planes_for(reduced, dst))
    *outer, along_last = maker.windows.axes
    calls = index_calls(first, [*map(single_runs, src.dims[2:-1]), along_last])
    add_calls(assembly, calls, (*OWN, "first"), {"dst": View(REDUCED), "indices": View(PLACES)})
    calls = index_calls(second, [*outer, single_runs(dst.dims[-1])], carries=True)
    add_calls(assembly, calls, (*OWN, "carried"), {"src": View(REDUCED), "carried": View(PLACES)})
    assembly.scratch |= {REDUCED: reduced.size_bytes, PLACES: reduced.size_bytes}


STRATEGIES = (
    PoolStrategy("bytes_in_two_steps", words, check_overlap, add_two_steps, as_bits=True),
    PoolStrategy("bytes", words, any_windows, add_pixels, as_bits=True),
    PoolStrategy("narrow_pixels", narrow_channels, check_apart, add_pixels),
    PoolStrategy("narrow_planes", narrow_planes, check_planes, add_planes),
    PoolStrategy("narrow_rows", narrow_rows, check_rows, add_rows),
    PoolStrategy("planes", dense_rows, check_planes, add_planes),
    PoolStrategy("near_pixels", short_rows, check_few, with_channels_near(add_pixels)),
    PoolStrategy("typed_near_pixels", typed_rows, check_few, with_channels_near(add_pixels)),
    PoolStrategy("typed_near_two_steps", typed_rows, check_overlap, with_channels_near(add_two_steps)),
    PoolStrategy("rows", long_rows, check_rows, add_rows),
    PoolStrategy("two_steps", channels_alone, check_overlap, add_two_steps),
    PoolStrategy("pixels", channels_alone, any_windows, add_pixels),
    PoolStrategy("indexed_two_steps", channels_with_indices, check_indexed_overlap, add_indexed_steps),
    PoolStrategy("indexed", channels_with_indices, any_windows, add_indexed),
)
