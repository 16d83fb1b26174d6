"""Convolution problems and their strings, as benchdnn writes them: `mb1ic64ih56oc64oh56kh3ph1n"name"`.

Keys: g groups, mb images, ic and oc channels; for an axis d, h or w: i input, o output, k kernel, s stride (default 1),
p padding before the first element, d dilation (default 0, a dense kernel); n the name, which ends the string.  `_` may
stand between entries.  Axes that are not given repeat the ones before them (`kh3` alone is a 3x3 kernel); a problem
with only w is 1D, one with d is 3D.  A missing output is computed with equal padding on both sides (default 0), a
missing padding is half of what the output needs, and the padding after the last element follows from the output.
"""

import math
from typing import TypeVar

from asmdnn.bench.axis import AXES, ProblemAxis
from asmdnn.bench.problem_text import Named, check_given, check_memory, entries, quoting
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.convolution.winograd.checks import LEAST_CHANNELS
from asmdnn.records import dataclass, replace

C = TypeVar("C", bound="ConvProblem")
DEFAULT_MB = 2  # benchdnn's

_KEYS = ("g", "mb", "ic", "oc", *(kind + axis for kind in "iokspd" for axis in AXES))


@dataclass(frozen=True, slots=True)
class ConvProblem(Named):
    """A forward convolution, or deconvolution, as its axes say.

    `axes` are the spatial axes, outermost first: (w,), (h, w) or (d, h, w).
    """

    mb: int
    groups: int
    ic: int
    oc: int
    axes: tuple[ProblemAxis, ...]
    name: str = ""

    def with_images(self: C, mb: int) -> C:
        return replace(self, mb=mb)

    @property
    def src_dims(self) -> tuple[int, ...]:
        return (self.mb, self.ic, *(axis.i for axis in self.axes))

    @property
    def filter_dims(self) -> tuple[int, ...]:
        """The weights without a dim of groups: all output channels, the input channels of a group, positions."""
        return (self.oc, self.ic // self.groups, *(axis.k for axis in self.axes))

    @property
    def weights_dims(self) -> tuple[int, ...]:
        groups = (self.groups, self.oc // self.groups) if self.groups > 1 else (self.oc,)
        return (*groups, *self.filter_dims[1:])

    @property
    def dst_dims(self) -> tuple[int, ...]:
        return (self.mb, self.oc, *(axis.o for axis in self.axes))

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(axis.s for axis in self.axes)

    @property
    def dilations(self) -> tuple[int, ...]:
        return tuple(axis.d for axis in self.axes)

    @property
    def padding_l(self) -> tuple[int, ...]:
        return tuple(axis.p for axis in self.axes)

    @property
    def padding_r(self) -> tuple[int, ...]:
        """Padding after the last element."""
        return tuple(axis.padding_after for axis in self.axes)

    @property
    def flops(self) -> int:
        """Two for every multiplication with a real input element; products with padding are not counted."""
        taps = math.prod(axis.taps_inside() for axis in self.axes)
        return 2 * self.mb * self.oc * (self.ic // self.groups) * taps

    @property
    def reduction(self) -> int:
        """Products in one output element: input channels of its group times kernel taps."""
        return self.ic // self.groups * math.prod(axis.k for axis in self.axes)

    @property
    def is_dense_3x3(self) -> bool:
        """Whether Winograd's convolution is for it."""
        axes = [(axis.k, axis.s, axis.d) for axis in self.axes]
        has_sums = self.groups == 1 or min(self.ic, self.oc) // self.groups >= LEAST_CHANNELS
        return has_sums and axes == [(3, 1, 0)] * 2

    def __str__(self) -> str:
        """The canonical string: every size, no default stride or dilation; `parse_problem` gives the problem back."""
        letters = AXES[-len(self.axes) :]
        if len(set(self.axes)) == 1:
            letters = letters[:1]

        def sizes(kind: str) -> str:
            return "".join(f"{kind}{a}{getattr(axis, kind)}" for a, axis in zip(letters, self.axes, strict=False))

        return "".join(
            (
                f"g{self.groups}" if self.groups > 1 else "",
                f"mb{self.mb}ic{self.ic}{sizes('i')}oc{self.oc}{sizes('o')}{sizes('k')}",
                sizes("s") if any(s != 1 for s in self.strides) else "",
                sizes("p"),
                sizes("d") if any(self.dilations) else "",
                f'n"{self.name}"' if self.name else "",
            )
        )


def parse_problem(text: str, axis: type[ProblemAxis] = ProblemAxis) -> ConvProblem:
    """The problem that `text` describes, with axes of that kind.

    Raises InvalidArguments that quotes it and names the entry that is wrong.
    """
    with quoting(text):
        return _build(*entries(text, _KEYS), axis)


def _build(numbers: dict[str, int], name: str, axis: type[ProblemAxis]) -> ConvProblem:
    check_given(numbers, "ic", "oc")
    groups, ic, oc = numbers.get("g", 1), numbers["ic"], numbers["oc"]
    for key, channels in (("ic", ic), ("oc", oc)):
        if channels % groups:
            raise InvalidArguments(f"'{key}' is {channels}, it must be a multiple of g{groups}")
    problem = ConvProblem(numbers.get("mb", DEFAULT_MB), groups, ic, oc, axes_of(numbers, axis), name)
    check_memory(src=problem.src_dims, weights=problem.weights_dims, dst=problem.dst_dims)
    return problem


def axes_of(
    numbers: dict[str, int], kind: type[ProblemAxis] = ProblemAxis, telling: str = "iokspd"
) -> tuple[ProblemAxis, ...]:
    """The completed axes; an axis counts as given when a value whose letter is in `telling` differs from its default,
    as in benchdnn."""
    defaults = {letter: int(letter == "s") for letter in telling}
    given = "".join(a for a in AXES if any(numbers.get(kind + a, unset) != unset for kind, unset in defaults.items()))
    if not given:
        raise InvalidArguments("a spatial size is missing: give at least ih and kh, or iw and kw")
    if given in ("dh", "dw"):
        raise InvalidArguments(f"'i{'w' if given == 'dh' else 'h'}' is missing: give all of d, h and w, or d alone")
    axes = {a: _axis(a, numbers, kind) for a in given}
    letters = AXES[AXES.index(given[0]) :]
    for a in letters:
        axis = axes.setdefault(a, axes[given[-1]])
        if numbers.get("p" + a, axis.p) != axis.p:
            raise InvalidArguments(f"'p{a}' is {numbers['p' + a]} without i{a} and k{a}: give these too")
    return tuple(axes[a] for a in letters)


def _axis(a: str, numbers: dict[str, int], kind: type[ProblemAxis]) -> ProblemAxis:
    check_given(numbers, "i" + a, "k" + a)
    i, k, o = numbers["i" + a], numbers["k" + a], numbers.get("o" + a, 0)
    axis = kind(i, o, k, s=numbers.get("s" + a, 1), p=numbers.get("p" + a, 0), d=numbers.get("d" + a, 0))
    if not axis.o:
        return axis._replace(o=axis.output(a))
    if "p" + a not in numbers:
        axis = axis._replace(p=max(0, axis.padding_needed // 2))
    axis.check_output(a)
    return axis
