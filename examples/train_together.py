"""Several processes train one network: each computes the gradients of its part of a batch, all apply their mean.

    python -m examples.train_together [torch | ray | dask] [processes]

By torch.distributed (gloo, which takes other machines, too) each process gets the gradients of all.  With Ray or Dask
the processes are actors, and this one passes gradients around.  All add up the parts in the order of their ranks, so
they have the same bits: those of one process that computes all parts by itself.
"""

import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
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


def by_torch(images: Array, targets: Array, parts: int, steps: int) -> Gradients:
    """What so many processes have learned that talk by torch.distributed."""
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


class Worker:
    """One of the processes of Ray or Dask: a training step between its halves."""

    def __init__(self, steps: int) -> None:
        self.step = train_digits.step_of(dnn.Engine(threads=1), 0, steps)

    def gradients(self, part: dict[str, Array]) -> Gradients:
        return self.step.gradients(**part)

    def apply(self, gradients: Gradients) -> None:
        self.step.apply(gradients)

    def learned(self) -> Gradients:
        return dict(self.step.parameters)


def by_ray(images: Array, targets: Array, parts: int, steps: int) -> Gradients:
    """What so many actors of Ray have learned on this machine; `ray.init("auto")` would join a cluster."""
    import ray

    ray.init(num_cpus=parts, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        workers = [ray.remote(num_cpus=1)(Worker).remote(steps) for _ in range(parts)]
        for some in batches(images, targets, parts, steps):
            given = zip(workers, some, strict=True)
            mean = ray.put(mean_of(ray.get([worker.gradients.remote(part) for worker, part in given])))
            ray.get([worker.apply.remote(mean) for worker in workers])
        found: Gradients = ray.get(workers[0].learned.remote())
    finally:
        ray.shutdown()
    return found


def by_dask(images: Array, targets: Array, parts: int, steps: int) -> Gradients:
    """What so many actors of Dask have learned; `Client("scheduler:8786")` would be one of many machines."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=parts, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workers = [client.submit(Worker, steps, actor=True, pure=False).result() for _ in range(parts)]
        for some in batches(images, targets, parts, steps):
            waiting = [worker.gradients(part) for worker, part in zip(workers, some, strict=True)]
            mean = mean_of([one.result() for one in waiting])
            for done in [worker.apply(mean) for worker in workers]:
                done.result()
        found: Gradients = workers[0].learned().result()
    return found


Together = Callable[[Array, Array, int, int], Gradients]
WAYS: dict[str, tuple[str, Together]] = {  # with the module that each needs
    "torch": ("torch", by_torch),
    "ray": ("ray", by_ray),
    "dask": ("distributed", by_dask),
}


def main(words: Sequence[str] = ()) -> None:
    name, parts = words[0] if words else "torch", int(words[1]) if len(words) > 1 else PROCESSES
    if name not in WAYS or not find_spec(WAYS[name][0]):
        sys.exit(f"train_together: install {name}" if name in WAYS else f"train_together: say {' or '.join(WAYS)}")
    images, targets = train_digits.digits()
    found, wanted = (train(images, targets, parts, STEPS) for train in (WAYS[name][1], alone))
    equal = all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)
    print(f"{parts} processes, {STEPS} steps: {'the same bits as' if equal else 'other bits than'} one process")


if __name__ == "__main__":
    command(main, __doc__, most=None)
