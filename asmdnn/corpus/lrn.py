"""The specs of local response normalization: taps apart, clipped at the ends of rows and of their pieces; powers."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.lrn import LrnSpec
from asmdnn.generators.functions.lrn_gradient import LrnGradientSpec
from asmdnn.generators.functions.tap_rows import AT_ONCE, Tap
from asmdnn.records import replace

GAP = 3  # elements between rows
NUMBERS = (2.0, 0.25, 0.75)  # k, factor, beta


def of_rows(
    isa: str,
    rows: int,
    elements: int,
    taps: tuple[Tap, ...],
    piece: int = 0,
    numbers: tuple[float, float, float] = NUMBERS,
    has_workspace: bool = False,
) -> LrnSpec:
    """Rows of src a gap apart, those of dst dense."""
    k, factor, beta = numbers
    return LrnSpec(
        isa=isa, rows=rows, elements=elements, src_row_bytes=4 * (elements + GAP), dst_row_bytes=4 * elements,
        taps=taps, piece=piece or elements, k=k, factor=factor, beta=beta, has_workspace=has_workspace,
    )  # fmt: skip


def clipped(reach: int, elements: int, row_bytes: int = 0) -> tuple[Tap, ...]:
    """Neighbours of a row, as far as the row has them."""
    return tuple(Tap(4 * t + row_bytes, max(0, -t), elements - max(0, t)) for t in range(-reach, reach + 1))


def apart(isa: str) -> Iterator[LrnSpec]:
    """Whole rows, of tails and around the turn of the loop."""
    lanes = LANES[isa]
    for elements in (3, lanes, 2 * AT_ONCE * lanes + lanes + 2):
        yield of_rows(isa, 2, elements, tuple(Tap(d * 4 * (elements + GAP), 0, elements) for d in (-1, 0, 1)))


def along(isa: str) -> Iterator[LrnSpec]:
    """Ends of rows: shorter than a window, of one vector, and with a loop between."""
    lanes = LANES[isa]
    for elements in (2, lanes + 1, 2 * AT_ONCE * lanes + 3 * lanes):
        yield of_rows(isa, 2, elements, clipped(2, elements), has_workspace=elements == lanes + 1)
    both = clipped(1, lanes + 3, -8 * lanes) + clipped(1, lanes + 3)
    yield of_rows(isa, 1, lanes + 3, both)


def pieces(isa: str) -> Iterator[LrnSpec]:
    """Blocks of 8 and 16 channels, with neighbours in the blocks beside; whole vectors, and half of one."""
    for piece, pixels in ((8, 3), (8, 2 * AT_ONCE * LANES[isa] // 8), (16, 5)):
        inside = clipped(1, piece)
        before, after = -4 * 40 * piece, 4 * 40 * piece
        outside = Tap(before + 4 * (piece - 1), 0, 1, True), Tap(after - 4 * (piece - 1), piece - 1, piece, True)
        yield replace(of_rows(isa, 2, pixels * piece, (*inside, *outside), piece), src_row_bytes=4 * pixels * piece)


def powers(isa: str) -> Iterator[LrnSpec]:
    for beta in (0.5, 1.0, 0.6):
        yield of_rows(isa, 1, LANES[isa], clipped(1, LANES[isa]), numbers=(1.0, 1e-4, beta))


def gradients(isa: str) -> Iterator[LrnGradientSpec]:
    """Taps apart and along, in pieces, of a vector and of loops."""
    lanes = LANES[isa]
    for elements in (3, lanes + 1, lanes, 2 * AT_ONCE * lanes + 3 * lanes):
        every = (*clipped(2, elements), Tap(-8 * 4 * elements, 0, elements))
        yield gradient_of(isa, elements, every, elements)
    for piece, pixels in ((8, 3), (16, 5)):
        away = 4 * 40 * piece
        outside = Tap(4 * (piece - 1) - away, 0, 1, True), Tap(away - 4 * (piece - 1), piece - 1, piece, True)
        yield gradient_of(isa, pixels * piece, (*clipped(1, piece), *outside), piece)


def gradient_of(isa: str, elements: int, taps: tuple[Tap, ...], piece: int) -> LrnGradientSpec:
    """Two dense rows."""
    row_bytes = 4 * elements
    return LrnGradientSpec(
        isa=isa, rows=2, elements=elements, src_row_bytes=row_bytes, dst_row_bytes=row_bytes, taps=taps, piece=piece,
        factor=0.25,
    )  # fmt: skip


FAMILIES = of_levels("lrn", apart=apart, along=along, pieces=pieces, powers=powers, gradients=gradients)
