"""The specs of conversions to narrow types that go past the caches."""

from collections.abc import Iterator
from functools import partial

from asmdnn.corpus.conv import LANES
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.isa.elements import size_of
from asmdnn.isa.levels import AVX512_CORE, AVX512_CORE_BF16

NARROW = ("bf16", "f16", "s8", "u8")


def streamed_rows(isa: str, lanes: int, kinds: tuple[str, ...]) -> Iterator[ConvertSpec]:
    """As few columns as make whole stores, with scales, and so many that they are looped over."""
    for kind in kinds:
        size = size_of(kind)
        for columns, scaled in ((4 * lanes, True), (40 * lanes, False)):
            yield ConvertSpec(
                isa=isa, conversion=Conversion("f32", kind, scaled), rows=3, columns=columns,
                src_steps=(4 * columns + 4, 4), dst_steps=(size * columns, size), scale_steps=(4, 0), streaming=True,
            )  # fmt: skip


FAMILIES = {
    "streamed-avx2": partial(streamed_rows, "avx2", LANES["avx2"], NARROW),
    f"streamed-{AVX512_CORE.name}": partial(streamed_rows, AVX512_CORE.name, LANES[AVX512_CORE.name], NARROW),
    f"streamed-{AVX512_CORE_BF16.name}": partial(
        streamed_rows, AVX512_CORE_BF16.name, LANES[AVX512_CORE.name], ("bf16",)
    ),
}
