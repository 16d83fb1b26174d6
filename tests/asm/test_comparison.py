"""What compare() takes, and what it compares: whole integers, of references that give them."""

import itertools
from typing import Any

import numpy as np
import pytest

from asmdnn import asm
from asmdnn.errors import InvalidArguments


@asm.function("uint64_t same(uint64_t n)")
def same(f: Any, n: Any) -> None:
    f.ret(n)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"m": [1]}, "names no integer of"),
        ({"x": [1]}, "names no integer of"),
        ({"n": []}, r"compare\(n=\[\]\) needs a range, or 1 to 1048576 integers"),
        ({"n": 3}, r"compare\(n=3\) needs a range"),
        ({"n": itertools.count()}, "needs a range, or 1 to 1048576 integers"),
        ({"cases": 0}, "cases must be an integer from 1 on, not 0"),
        ({"tolerance": 1e-3}, r"tolerance must be a function, such as asm.within\(1e-6\), not 0.001"),
        ({"tolerance": 0}, "tolerance must be a function"),
    ],
)
def test_what_compare_takes(options: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidArguments, match=what):
        same.compare(lambda n: n, **options)


def test_integers_are_compared_in_full() -> None:
    """In 64 bits, signed or not, whatever type the reference has them in."""

    large = [0, 1, 2**53 + 1, 2**63, 2**64 - 1]
    for returned in (int, np.uint64, float):
        numbers = large if returned is not float else [0, 1, 2**53]
        same.compare(lambda n, returned=returned: returned(n), cases=50, n=numbers)
    for wrong in (lambda n: n + 1, lambda n: 10**400, lambda n: n > 0, lambda n: np.uint8(n & 255), lambda n: -1):
        with pytest.raises(asm.Mismatch, match="the result is"):
            same.compare(wrong, cases=50, n=large)
    for nothing in (lambda n: None, lambda n: "3", lambda n: np.ones(2)):
        with pytest.raises(InvalidArguments, match="where 'same' gives uint64_t: let it return a number"):
            same.compare(nothing, cases=3)
    with pytest.raises(InvalidArguments, match="reference must be a function of the same arguments, not 3"):
        same.compare(3)
