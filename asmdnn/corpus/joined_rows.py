"""The specs of conversions whose rows are halves of a vector, two of which make one."""

from collections.abc import Iterator
from itertools import product

from asmdnn.corpus.conv import LANES
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import JOINED, ConvertSpec
from asmdnn.isa.elements import size_of
from asmdnn.isa.levels import AVX512_CORE, AVX512_CORE_BF16

TYPES = ("f32", "bf16", "f16", "s32", "s8", "u8")


def joined_rows(isa: str, lanes: int) -> Iterator[ConvertSpec]:
    """All pairs of types; rows that touch in src, in dst, or nowhere; one turn of the loop and several; terms."""
    columns, turn = lanes // 2, 2 * JOINED
    for i, (src, dst) in enumerate(product(TYPES, TYPES)):
        if src == dst:
            continue
        for touches in ((1, 0), (0, 1), (0, 0))[i % 3 :]:
            of_src, of_dst = size_of(src), size_of(dst)
            rows = of_src * (columns + 3 - 3 * touches[0]), of_dst * (columns + 3 - 3 * touches[1])
            conversion = Conversion(src, dst, i % 4 == 0, i % 5 == 0, i % 7 == 0)
            spec = ConvertSpec(
                isa=isa, conversion=conversion, rows=turn * (1 + i % 2), columns=columns, src_steps=(rows[0], of_src),
                dst_steps=(rows[1], of_dst), joins=True,
            )  # fmt: skip
            if spec.fits_joined:
                yield spec


def wide() -> Iterator[ConvertSpec]:
    return joined_rows(AVX512_CORE.name, LANES[AVX512_CORE.name])


def narrow() -> Iterator[ConvertSpec]:
    return joined_rows("avx2", LANES["avx2"])


def rounded() -> Iterator[ConvertSpec]:
    """To bf16 by its instruction."""
    specs = joined_rows(AVX512_CORE_BF16.name, LANES[AVX512_CORE.name])
    return (spec for spec in specs if spec.conversion.dst == "bf16")


FAMILIES = {
    "joined-avx2": narrow,
    f"joined-{AVX512_CORE.name}": wide,
    f"joined-{AVX512_CORE_BF16.name}": rounded,
}
