"""Of how many problems of the bench's sets plans are those of deterministic="batch" anyway, and what it costs the rest.

python -m tools.any_batch.problems [--isa=LEVEL --machine=CLASS] [SET ...]    counts, of one level and class
python -m tools.any_batch.problems --cost [--threads=2] [SET ...]             times of the others, in turns
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.batch_files import problem_sets
from asmdnn.bench.descriptors import primitive_desc_of
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.timing import interleaved
from asmdnn.cli.prove import read


def planned(name: str, engine: dnn.Engine) -> Iterator[tuple[AnyCase, dnn.PrimitiveDesc]]:
    """The problems of a set that there are plans for."""
    for case in read([f"--batch={name}"])[2]:
        try:
            yield case, primitive_desc_of(case, engine)
        except dnn.Unimplemented:
            continue


def asking(pd: dnn.PrimitiveDesc) -> dnn.PrimitiveDesc | None:
    """The same with deterministic="batch"; None where it is refused."""
    try:
        return dnn.primitive_desc(pd.desc, pd.attr, replace(pd.engine, deterministic="batch"))
    except dnn.Unimplemented:
        return None


def counts(names: list[str], engine: dnn.Engine) -> None:
    """A line for each set: problems whose plans are equal, other ones, and those that are refused."""
    for name in names:
        found = [pd for _, pd in planned(name, engine)]
        asked = [pd for pd in found if asking(pd)]
        equal = sum(pd.any_batch for pd in asked)
        rest = f"other {len(asked) - equal:4} refused {len(found) - len(asked):4}"
        print(f"{name:20} equal {equal:4} {rest}", flush=True)


def call_of(pd: dnn.PrimitiveDesc) -> Callable[[], Any]:
    """A call on random numbers of f32, which all problems are of whose plans differ."""
    random = np.random.default_rng(1)

    def filled(tensor: dnn.MemoryDesc) -> dnn.Memory:
        if not tensor.holds_elements or tensor.dtype != dnn.f32:
            return dnn.Memory(tensor)
        plain = dnn.Memory.from_array(random.standard_normal(tensor.dims).astype(np.float32))
        return dnn.reorder(plain, tensor)

    memories = {name: filled(tensor) for name, tensor in pd.plan.tensors.items()}
    return partial(dnn.Primitive(pd).execute, None, **memories)


def ratio(pd: dnn.PrimitiveDesc, seconds: float) -> tuple[float, float]:
    """The time with deterministic="batch" over that without, medians of calls in turns, and the latter in us."""
    other = asking(pd)
    assert other
    asked, plain = interleaved([call_of(other), call_of(pd)], seconds)
    return asked.median / plain.median, plain.median * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.any_batch.problems", description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(problem_sets()))
    parser.add_argument("--isa", default="")
    parser.add_argument("--machine", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.7, help="of each cost")
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    engine = dnn.Engine(isa=options.isa, machine=options.machine, threads=options.threads)
    if not options.cost:
        counts(options.sets, engine)
        return
    for name in options.sets:
        for case, pd in planned(name, engine):
            if asking(pd) and not pd.any_batch:
                found, us = ratio(pd, options.seconds)
                print(f"{name:16} {found:5.2f} {us:9.1f} us  {pd.implementation:24} {case.problem}", flush=True)


if __name__ == "__main__":
    main()
