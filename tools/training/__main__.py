"""Training steps of whole networks beside torch's and jax's, in turns in one process.

    python -m tools.training [--models=resnet18,unet] [--batches=1,16] [--threads=1] [--seconds=5] [--precision=bf16]
                             [--peers=torch,jax] [--profile]

Prints for each model and batch the losses of the first steps of each side, the least and the middle time of a step,
and how many times as long each peer takes.  jax takes the cores that the process may use, whatever --threads says.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from statistics import median

import asmdnn as dnn
from tools.training.models import MODELS, Model
from tools.training.steps import Step, data, own, own_step

PAUSE, TURN = 0.02, 0.02  # seconds


def in_turns(steps: Mapping[str, Step], seconds: float) -> dict[str, list[float]]:
    """The seconds of calls, of each side in equally many turns, at least three.

    Threads of a library spin for some time after its call, so a pause and a call that does not count precede a turn.
    """
    times: dict[str, list[float]] = {name: [] for name in steps}
    end = time.perf_counter() + seconds
    turns = 0
    while time.perf_counter() < end or turns < 3:
        for name, step in steps.items():
            time.sleep(PAUSE)
            step()
            stop = time.perf_counter() + TURN
            while (start := time.perf_counter()) < stop:
                step()
                times[name].append(time.perf_counter() - start)
        turns += 1
    return times


def row(name: str, batch: int, times: Mapping[str, list[float]]) -> str:
    least = {side: min(found) * 1e3 for side, found in times.items()}
    middle = {side: median(found) * 1e3 for side, found in times.items()}
    texts = [f"{side} {least[side]:.3f} ({middle[side]:.3f}) ms" for side in times]
    ratios = [f"{middle[side] / middle['own']:.2f}" for side in times if side != "own"]
    return f"{name:10} batch {batch:2}  {', '.join(texts)}  {' '.join(ratios)}"


def peer_step(peer: str, model: Model, batch: int, threads: int) -> Step:
    """Libraries are imported here, as each machine has those that it measures."""
    if peer == "jax":
        import jax

        from tools.training.jax_side import of_jax

        return of_jax(jax, model, batch)
    import torch

    from tools.training.torch_side import of_torch

    torch.set_num_threads(threads)
    return of_torch(torch, model, batch)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.training", description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--precision", default="f32", help="of this side: f32 or bf16")
    parser.add_argument("--peers", default="torch", help="torch, jax or both")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--profile", action="store_true", help="a line for each primitive of this side, no peers")
    options = parser.parse_args()
    engine = dnn.Engine(threads=options.threads)
    for name in options.models.split(","):
        for batch in map(int, options.batches.split(",")):
            if options.profile:
                step = own_step(MODELS[name], batch, engine, precision=options.precision)
                x, t = data(MODELS[name], batch)
                print(name, batch, step.profile({"x": x, "t": t.reshape(step.inputs["t"][0])}, 3), sep="\n")
                continue
            start = time.perf_counter()
            steps = {"own": own(MODELS[name], batch, engine, precision=options.precision)}
            steps |= {peer: peer_step(peer, MODELS[name], batch, options.threads) for peer in options.peers.split(",")}
            losses = {side: [step() for _ in range(3)] for side, step in steps.items()}
            print(f"# planned and warm after {time.perf_counter() - start:.1f} s", losses, file=sys.stderr)
            print(row(name, batch, in_turns(steps, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
