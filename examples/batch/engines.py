"""Three ways to have workers, each a function that yields rows as they come, in any order.

A worker that dies costs the chunk that it had, which another one computes again: by Dask's and Ray's own retries, and
by a new pool of processes.  A chunk that kills every worker ends the run with an error after `RETRIES` more tries.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from examples.batch.work import Row

RETRIES: Final = 3
Task = Callable[[str, Sequence[str]], list[Row]]
Chunks = Sequence[Sequence[str]]


def by_processes(task: Task, pack: str, chunks: Chunks, workers: int) -> Iterator[list[Row]]:
    """By the standard library, started by spawn: a fork would inherit OpenMP's state, but not its threads."""
    left = dict(enumerate(chunks))
    for _ in range(1 + RETRIES):
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(task, pack, chunk): number for number, chunk in left.items()}
            try:
                for future in as_completed(futures):
                    rows = future.result()
                    del left[futures[future]]
                    yield rows
            except BrokenProcessPool:
                continue
        return
    raise RuntimeError(f"workers died {1 + RETRIES} times: {len(left)} chunks have no answers")


def by_dask(task: Task, pack: str, chunks: Chunks, workers: int) -> Iterator[list[Row]]:
    """By a cluster of Dask on this machine; `Client("scheduler:8786")` would be one of many machines."""
    from dask import config
    from distributed import Client, LocalCluster
    from distributed import as_completed as dask_completed

    config.set({"distributed.scheduler.allowed-failures": RETRIES})
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        futures = [client.submit(task, pack, list(chunk), pure=False) for chunk in chunks]
        for _, rows in dask_completed(futures, with_results=True):
            yield rows


def by_ray(task: Task, pack: str, chunks: Chunks, workers: int) -> Iterator[list[Row]]:
    """By Ray on this machine; `ray.init("auto")` would join a cluster."""
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(task)
        waiting = [remote.remote(pack, list(chunk)) for chunk in chunks]
        while waiting:
            ready, waiting = ray.wait(waiting)
            yield from ray.get(ready)
    finally:
        ray.shutdown()


ENGINES: Final = {"processes": by_processes, "dask": by_dask, "ray": by_ray}
