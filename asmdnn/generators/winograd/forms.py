"""Winograd's minimal filtering F(m x m, 3 x 3), as data: how m + 2 values are transformed along one axis.

    y = A^T ((G g) * (B^T d))       d: m + 2 neighbours, g: the 3 taps, y: m results

A tile of m x m results is transformed along both axes, so its 9 m^2 products become (m + 2)^2: 2.25 times fewer for
m = 2, 4 times for m = 4.  The matrices evaluate polynomials at m + 1 points and at infinity (Toom and Cook; Lavin and
Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).  Any points give the same result but for rounding:
F(2, 3) takes 0, 1, -1; F(4, 3) takes 0, +-sqrt(1/2), +-sqrt(2), whose errors are a quarter of those of 0, +-1, +-2.
docs/winograd.md has the measurements.

Additions have ports of their own beside those of multiplications (AMD), and three operands: a product that two results
share is added and subtracted, not multiplied twice.

Gradients of weights take the same matrices from the other side: as <y, A^T ((G g) * (B^T d))> is a product of g with

    dg = G^T ((A dy) * (B^T d))     dy: m gradients of results, dg: those of the 3 taps

A matrix is written as groups of results that share no work.  A transform of a tile goes group by group, and needs
the intermediate values of one group only, which 16 registers hold.
"""

from math import sqrt
from typing import Final

from asmdnn.records import dataclass

Terms = tuple[tuple[float, str], ...]  # a sum of coefficient * value
Step = tuple[str, Terms]  # the value that becomes it


@dataclass(frozen=True, slots=True, eq=False)
class ResultGroup:
    """Results number `results` of a 1-D transform, which are y0, y1.

    d0, d1, .. are what is transformed; s is one more value.  A step reads its own target in its first term at most.
    """

    results: tuple[int, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Transforms:
    """The transforms of F(m x m, 3 x 3): of a tile of the source (B^T), of weights (G), of products (A^T).

    alone: the last one with each result for itself, which takes more operations and half the registers.
    """

    m: int
    source: tuple[ResultGroup, ...]
    weights: tuple[ResultGroup, ...]
    products: tuple[ResultGroup, ...]
    alone: tuple[ResultGroup, ...]

    @property
    def size(self) -> int:
        """Of the source's tile along an axis."""
        return self.m + 2

    @property
    def frequencies(self) -> int:
        """Products of a tile."""
        return self.size**2


@dataclass(frozen=True, slots=True, eq=False)
class GradientTransforms:
    """What gradients of weights transform beside the source: a tile of diff_dst (A), and sums of products (G^T)."""

    diff_dst: tuple[ResultGroup, ...]
    taps: tuple[ResultGroup, ...]


A: Final = sqrt(0.5)  # F(4, 3)'s points are 0, A, -A, B, -B and infinity; A^2 = 1/2, B^2 = 2, A * B = 1
B: Final = sqrt(2.0)

F2: Final = Transforms(
    2,
    source=(
        ResultGroup((0,), (("y0", ((1, "d0"), (-1, "d2"))),)),
        ResultGroup((1, 2), (("y0", ((1, "d1"), (1, "d2"))), ("y1", ((1, "d2"), (-1, "d1"))))),
        ResultGroup((3,), (("y0", ((1, "d1"), (-1, "d3"))),)),
    ),
    weights=(
        ResultGroup((0,), (("y0", ((1, "d0"),)),)),
        ResultGroup((1, 2), (
            ("y0", ((0.5, "d0"), (0.5, "d2"))), ("s", ((0.5, "d1"),)),
            ("y1", ((1, "y0"), (-1, "s"))), ("y0", ((1, "y0"), (1, "s"))),
        )),
        ResultGroup((3,), (("y0", ((1, "d2"),)),)),
    ),
    products=(
        ResultGroup((0, 1), (
            ("y0", ((1, "d1"), (1, "d2"), (1, "d0"))), ("y1", ((1, "d1"), (-1, "d2"), (-1, "d3"))),
        )),
    ),
    alone=(
        ResultGroup((0,), (("y0", ((1, "d1"), (1, "d2"), (1, "d0"))),)),
        ResultGroup((1,), (("y0", ((1, "d1"), (-1, "d2"), (-1, "d3"))),)),
    ),
)  # fmt: skip

F4: Final = Transforms(
    4,
    source=(
        ResultGroup((0,), (("y0", ((1, "d4"), (1, "d0"), (-2.5, "d2"))),)),
        ResultGroup((1, 2), (
            ("y1", ((1, "d4"), (-2, "d2"))), ("s", ((A, "d3"), (-2 * A, "d1"))),
            ("y0", ((1, "y1"), (1, "s"))), ("y1", ((1, "y1"), (-1, "s"))),
        )),
        ResultGroup((3, 4), (
            ("y1", ((1, "d4"), (-0.5, "d2"))), ("s", ((B, "d3"), (-0.5 * B, "d1"))),
            ("y0", ((1, "y1"), (1, "s"))), ("y1", ((1, "y1"), (-1, "s"))),
        )),
        ResultGroup((5,), (("y0", ((1, "d5"), (1, "d1"), (-2.5, "d3"))),)),
    ),
    weights=(
        ResultGroup((0,), (("y0", ((1, "d0"),)),)),
        ResultGroup((1, 2), (
            ("y0", ((-2 / 3, "d0"), (-1 / 3, "d2"))), ("s", ((-2 / 3 * A, "d1"),)),
            ("y1", ((1, "y0"), (-1, "s"))), ("y0", ((1, "y0"), (1, "s"))),
        )),
        ResultGroup((3, 4), (
            ("y0", ((1 / 6, "d0"), (1 / 3, "d2"))), ("s", ((1 / 6 * B, "d1"),)),
            ("y1", ((1, "y0"), (-1, "s"))), ("y0", ((1, "y0"), (1, "s"))),
        )),
        ResultGroup((5,), (("y0", ((1, "d2"),)),)),
    ),
    products=(
        ResultGroup((0, 2), (
            ("y1", ((1, "d1"), (1, "d2"))), ("s", ((1, "d3"), (1, "d4"))),
            ("y0", ((1, "y1"), (1, "d0"), (1, "s"))), ("y1", ((0.5, "y1"), (2, "s"))),
        )),
        ResultGroup((1, 3), (
            ("y0", ((1, "d1"), (-1, "d2"))), ("s", ((1, "d3"), (-1, "d4"))), ("y0", ((A, "y0"),)),
            ("y1", ((1, "d5"), (0.5, "y0"), (2 * B, "s"))), ("y0", ((1, "y0"), (B, "s"))),
        )),
    ),
    alone=(
        ResultGroup((0,), (("y0", ((1, "d0"), (1, "d1"), (1, "d2"))), ("s", ((1, "d3"), (1, "d4"))),
                     ("y0", ((1, "y0"), (1, "s"))))),
        ResultGroup((2,), (("y0", ((1, "d1"), (1, "d2"))), ("s", ((1, "d3"), (1, "d4"))),
                     ("y0", ((0.5, "y0"), (2, "s"))))),
        ResultGroup((1,), (("y0", ((1, "d1"), (-1, "d2"))), ("s", ((1, "d3"), (-1, "d4"))),
                     ("y0", ((A, "y0"), (B, "s"))))),
        ResultGroup((3,), (("y0", ((1, "d1"), (-1, "d2"))), ("s", ((1, "d3"), (-1, "d4"))),
                     ("y0", ((A / 2, "y0"), (2 * B, "s"))), ("y0", ((1, "y0"), (1, "d5"))))),
    ),
)  # fmt: skip

FORMS: Final = {form.m: form for form in (F2, F4)}
GRADIENTS: Final = {  # F(2x2) would not be faster (docs/winograd.md)
    4: GradientTransforms(
        diff_dst=(
            ResultGroup((0,), (("y0", ((1, "d0"),)),)),
            ResultGroup((1, 2), (
                ("y1", ((1, "d0"), (0.5, "d2"))), ("s", ((A, "d1"), (A / 2, "d3"))),
                ("y0", ((1, "y1"), (1, "s"))), ("y1", ((1, "y1"), (-1, "s"))),
            )),
            ResultGroup((3, 4), (
                ("y1", ((1, "d0"), (2, "d2"))), ("s", ((B, "d1"), (2 * B, "d3"))),
                ("y0", ((1, "y1"), (1, "s"))), ("y1", ((1, "y1"), (-1, "s"))),
            )),
            ResultGroup((5,), (("y0", ((1, "d3"),)),)),
        ),
        taps=(
            ResultGroup((0, 2), (
                ("y1", ((1, "d1"), (1, "d2"))), ("s", ((1, "d3"), (1, "d4"))),
                ("y0", ((-2 / 3, "y1"), (1, "d0"), (1 / 6, "s"))), ("y1", ((-1 / 3, "y1"), (1, "d5"), (1 / 3, "s"))),
            )),
            ResultGroup((1,), (
                ("y0", ((1, "d1"), (-1, "d2"))), ("s", ((1, "d3"), (-1, "d4"))),
                ("y0", ((-2 / 3 * A, "y0"), (1 / 6 * B, "s"))),
            )),
        ),
    )
}  # fmt: skip
