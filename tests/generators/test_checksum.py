"""Names of kernels: what tells two of a family apart, and what does not rename one."""

from dataclasses import dataclass, field

import pytest

from asmdnn.generators.checksum import checksum
from asmdnn.types import DataType, f32, s8


@dataclass(frozen=True)
class Inner:
    size: int = 1
    more: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class Outer:
    rows: int
    kind: DataType = f32
    inner: Inner = Inner()
    steps: tuple[Inner, ...] = ()
    factor: float = 0.0


@dataclass(frozen=True)
class Renamed:
    """As Outer is, but for its name and a field that came later."""

    rows: int
    kind: DataType = f32
    inner: Inner = Inner()
    steps: tuple[Inner, ...] = ()
    factor: float = 0.0
    streaming: bool = False


def test_defaults_and_the_class_have_no_say() -> None:
    assert checksum(Outer(3)) == checksum(Renamed(3)) == checksum(Outer(3, f32, Inner(1), (), 0.0))
    assert checksum(Outer(3, steps=(Inner(2),))) == checksum(Renamed(3, steps=(Inner(2, more=0),)))


@pytest.mark.parametrize(
    "other",
    [
        Outer(4),
        Outer(3, s8),
        Outer(3, inner=Inner(2)),
        Outer(3, steps=(Inner(),)),
        Outer(3, steps=(Inner(), Inner())),
        Outer(3, factor=-0.0),
        Renamed(3, streaming=True),
    ],
)
def test_each_other_value_is_told_apart(other: Outer | Renamed) -> None:
    assert checksum(other) != checksum(Outer(3))
