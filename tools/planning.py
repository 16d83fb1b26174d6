"""What planning costs against the size of the problem: `python tools/planning.py`, from the repository's root.

For each kind of primitive and m = 10^2 .. 10^8 rows (or images): milliseconds to plan, to prove the plan by check(),
the calls of kernels that it makes and the records that it writes out.  A plan is made anew every time; least of all.
"""

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import asmdnn as dnn
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.implementation import plans

SIZES = tuple(10**e for e in range(2, 9))
REPEATS = 4
Make = Callable[[int], Any]


def desc(dims: tuple[int, ...], tag: str = "", dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcdefgh"[: len(dims)])


def product(k: int, n: int) -> Make:
    return lambda m: dnn.MatMul(desc((m, k)), desc((k, n)), desc((m, n)))


def batch(m: int) -> Any:
    return dnn.MatMul(desc((m, 8, 8)), desc((m, 8, 8)), desc((m, 8, 8)))


def inner_product(m: int) -> Any:
    return dnn.InnerProductForward(src=desc((m, 64)), weights=desc((64, 64), "any"), dst=desc((m, 64)))


def weights_gradient(m: int) -> Any:
    return dnn.InnerProductBackwardWeights(src=desc((m, 64)), diff_weights=desc((64, 64)), diff_dst=desc((m, 64)))


def convolution(m: int) -> Any:
    images = desc((m, 64, 28, 28), "any")
    weights = desc((64, 64, 3, 3), "any")
    return dnn.ConvolutionForward(src=images, weights=weights, dst=images, padding_l=(1, 1), padding_r=(1, 1))


def images_of(m: int, pixels: int) -> dnn.MemoryDesc:
    return desc((m, 8, pixels, pixels), "acdb")


KINDS: dict[str, Make] = {
    "matmul m x 64 : 64 x 64": product(64, 64),
    "matmul m x 300 : 300 x 1": product(300, 1),
    "matmul m x 4 : 4 x 64": product(4, 64),
    "matmul m x 256 : 256 x 256": product(256, 256),
    "matmul m of 8 x 8 : 8 x 8": batch,
    "inner product m x 64": inner_product,
    "its gradient of weights": weights_gradient,
    "convolution, m images": convolution,
    "pooling, m images": lambda m: dnn.PoolingForward("max", images_of(m, 28), images_of(m, 14), (2, 2), (2, 2)),
    "resampling, m images": lambda m: dnn.ResamplingForward("linear", images_of(m, 14), images_of(m, 28)),
    "binary m x 64 + 1 x 64": lambda m: dnn.BinaryForward("add", desc((m, 64)), desc((1, 64)), desc((m, 64))),
    "reorder m x 64, ab to ba": lambda m: dnn.Reorder(desc((m, 64)), desc((m, 64), "ba")),
    "reorder m x 17 x 7, abc to aBc8b": lambda m: dnn.Reorder(desc((m, 17, 7)), desc((m, 17, 7), "aBc8b")),
    "shuffle m x 64": lambda m: dnn.Shuffle(desc((m, 64)), desc((m, 64)), 1, 4),
    "shuffle m x 64 x 7": lambda m: dnn.Shuffle(desc((m, 64, 7)), desc((m, 64, 7)), 1, 4),
}


def timed(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Milliseconds, the least of all, and the last result."""
    least, result = float("inf"), None
    for _ in range(repeats):
        start = perf_counter()
        result = work()
        least = min(least, perf_counter() - start)
    return 1e3 * least, result


def lines(kinds: dict[str, Make], sizes: tuple[int, ...]) -> Iterator[str]:
    yield f"{'':34}{'m':>12}{'plan ms':>10}{'check ms':>10}{'calls':>14}{'written out':>13}"
    for name, make in kinds.items():
        for m in sizes:
            yield f"{name:34}{m:>12,}{row_of(make(m))}"


def row_of(request: Any) -> str:
    """What follows the size in a line."""
    engine = dnn.Engine(isa="avx2", threads=2, l2_bytes=512 << 10)

    def planned() -> Plan:
        plans.shrink(0)
        return dnn.primitive_desc(request, engine=engine).plan

    milliseconds, plan = timed(planned)
    proof = f"{timed(plan.check, 1)[0]:.0f}"
    calls, records = sum(phase.count for phase in plan.phases), sum(len(phase.records) for phase in plan.phases)
    return f"{milliseconds:>10.1f}{proof:>10}{calls:>14,}{records:>13,}"


if __name__ == "__main__":
    wanted = {name: make for name, make in KINDS.items() if all(word in name for word in sys.argv[1:])}
    for line in lines(wanted, SIZES):
        print(line, flush=True)
