"""Several processes train one network: each computes the gradients of its part of a batch, all apply their mean.

    python -m examples.train_together [processes]

Gradients go around by torch.distributed (gloo, which takes other machines, too).  Every process adds up the parts in
the order of their ranks, so that all have the same bits: those of one process that computes all parts by itself.
"""

import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import asmdnn as dnn
from examples import train_digits
from examples.command import command

Array = np.ndarray[Any, Any]
Gradients = dict[str, Array]
PROCESSES, STEPS = 2, 20


def mean_of(parts: Sequence[Gradients]) -> Gradients:
    """Of the gradients of all parts, added in their order."""
    share = np.float32(1 / len(parts))
    return {name: sum((part[name] for part in parts[1:]), start=parts[0][name]) * share for name in parts[0]}


def batches(images: Array, targets: Array, parts: int, steps: int) -> list[list[dict[str, Array]]]:
    """For each step what each process takes: a batch of its own."""
    rng, size = np.random.default_rng(0), train_digits.BATCH
    chosen = [rng.choice(len(images), (parts, size), replace=False) for _ in range(steps)]
    return [[{"x": images[some], "t": targets[some]} for some in step] for step in chosen]


def alone(images: Array, targets: Array, parts: int, steps: int) -> Gradients:
    """What one process has learned that computes all parts."""
    step = train_digits.step_of(dnn.Engine(threads=1), 0, steps)
    for some in batches(images, targets, parts, steps):
        step.apply(mean_of([step.gradients(**part) for part in some]))
    return dict(step.parameters)


def work(rank: int, parts: int, steps: int, meeting: str, data: tuple[Array, Array], learned: Any) -> None:
    """One of the processes; the first one says what was learned."""
    import torch
    from torch import distributed

    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=parts)
    step = train_digits.step_of(dnn.Engine(threads=1), 0, steps)
    for some in batches(*data, parts, steps):
        own = step.gradients(**some[rank])
        flat = torch.from_numpy(np.concatenate([x.ravel() for x in own.values()]))
        every = [torch.empty_like(flat) for _ in range(parts)]
        distributed.all_gather(every, flat)
        step.apply(mean_of([named(own, x.numpy()) for x in every]))
    if rank == 0:
        learned.put(dict(step.parameters))
    distributed.barrier()
    distributed.destroy_process_group()


def named(model: Gradients, flat: Array) -> Gradients:
    """The gradients, one after the other in `flat`, by names and dims of others."""
    ends = np.cumsum([x.size for x in model.values()])[:-1]
    pieces = zip(model.items(), np.split(flat, ends), strict=True)
    return {name: piece.reshape(np.shape(x)) for (name, x), piece in pieces}


def together(images: Array, targets: Array, parts: int, steps: int) -> Gradients:
    """What so many processes have learned."""
    context = multiprocessing.get_context("spawn")
    learned = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        given = [(rank, parts, steps, meeting, (images, targets), learned) for rank in range(parts)]
        processes = [context.Process(target=work, args=arguments) for arguments in given]
        for process in processes:
            process.start()
        found: Gradients = learned.get()
        for process in processes:
            process.join()
    return found


def main(words: Sequence[str] = ()) -> None:
    parts = int(words[0]) if words else PROCESSES
    try:
        images, targets = train_digits.digits()
        import torch  # noqa: F401 - which brings what processes talk by
    except ImportError as error:
        sys.exit(f"train_together: {error}")
    found, wanted = (train(images, targets, parts, STEPS) for train in (together, alone))
    equal = all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)
    print(f"{parts} processes, {STEPS} steps: {'the same bits as' if equal else 'other bits than'} one process")


if __name__ == "__main__":
    command(main, __doc__, most=1)
