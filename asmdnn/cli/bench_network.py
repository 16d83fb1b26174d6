"""`asmdnn bench --network MODEL.onnx`: a model here and in other libraries, in turns in one process."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from asmdnn.bench.peers.models import ROUNDING, agree, check_peer, difference, peer_model
from asmdnn.bench.timing import PAUSE_S, Times, interleaved
from asmdnn.cli.models import HELP, TEXTS, ModelWords, data_of, model_words, number
from asmdnn.cli.terminal import show_help
from asmdnn.errors import InvalidArguments, resembling
from asmdnn.network.quantized.numbers import output_steps
from asmdnn.records import replace
from asmdnn.runtime.other_work import OtherWork

USAGE = """asmdnn bench --network [OPTION ...] MODEL.onnx
Runs a model on random inputs here and in other libraries, in turns in one process: a row for each number of threads
and each library, with milliseconds of a run (10th percentile and median), how many times as long that is as here, and
the largest difference of any output, as a share of the largest value.  Answers are near within 1e-3 of it, and
integers of 8 bits within one step.
{model}
  --threads=1,2            one or several numbers of threads
  --precision=f32,bf16     a row for each; ratios and errors are to the first
  --input=NAME:FILE.npy    data of an input, with its dims, instead of random numbers
  --peer=onnxruntime,openvino,openvino-default   the libraries; openvino is held to f32 by its precision hint,
                           openvino-default computes as it is installed, in bf16 where the CPU multiplies it; what is
                           not installed is left out with a word
  --max-ms=3000            time for each number of threads
Example: asmdnn bench --network recogniser.onnx --shapes=x=1x3x48x320 --peer=onnxruntime,openvino --threads=1,2"""
HEADER = f"{'threads':>7} {'library':<16} {'p10 ms':>10} {'median ms':>10} {'ratio':>6} {'error':>9}"
MAX_MS = 3000
FAILED = 1


def run_network(arguments: Sequence[str]) -> int:
    """The exit status: 1 if a peer that computes in f32, as we do, answers otherwise.  Raises AsmdnnError for what
    cannot be run."""
    words = list(with_values(arguments))
    if not words or any(word in ("-h", "--help") for word in words):
        show_help(USAGE.format(model=HELP))
        return 0
    asked = model_words("bench", [word for word in words if word.partition("=")[0] not in OWN])
    own = dict(word.removeprefix("--").partition("=")[::2] for word in words if word.partition("=")[0] in OWN)
    files = dict(word.removeprefix("--input=").partition(":")[::2] for word in asked.rest)
    other = [word for word in asked.rest if not word.startswith("--input=")]
    if other:
        near = resembling(other[0].partition("=")[0], (*OWN, *(f"--{name}" for name in TEXTS), "--input", "--shape"))
        raise InvalidArguments(f"bench: no option '{other[0]}'{near or ': see asmdnn bench --network --help'}")
    budget_s = number("max-ms", own.get("max-ms", str(MAX_MS))) / 1e3
    peers = [peer for peer in own.get("peer", "").split(",") if peer]
    for peer in peers:
        check_peer(peer)
    print(HEADER)
    others = OtherWork()
    fits = [bench(asked, count, peers, files, budget_s) for count in own.get("threads", "0").split(",")]
    others.warn(sys.stderr)
    return 0 if all(fits) else FAILED


OWN = ("--threads", "--peer", "--max-ms")


def with_values(arguments: Sequence[str]) -> Iterator[str]:
    """The words, `--network FILE` and `--shapes NAME=DIMS` as one each."""
    rest = iter(arguments)
    for word in rest:
        if word == "--network" or word.startswith("--network="):
            yield from [word.partition("=")[2]] if "=" in word else []
        elif word == "--shapes":
            yield f"{word}={next(rest, '')}"
        else:
            yield word


def bench(asked: ModelWords, threads: str, peers: Sequence[str], files: Mapping[str, str], budget_s: float) -> bool:
    """The rows of a number of threads; whether all answers are near."""
    first, *others = asked.texts.get("precision", "f32").split(",")
    nets = {word: in_precision(asked, threads, word).load(files=files) for word in (first, *others)}
    net = nets[first]
    feeds = {name: data_of(name, files, *wanted) for name, wanted in net.inputs.items()}
    every = {**feeds, **{name: np.asarray(value) for name, value in asked.constants.items()}}
    count = net.engine.threads
    found = {peer: peer_model(peer, asked.path, every, count) for peer in peers}
    missing = [peer for peer, model in found.items() if model is None]
    calls: dict[str, Callable[[], dict[str, Any]]] = {"asmdnn": lambda: net.run(feeds)}
    calls |= {f"asmdnn {word}": partial(nets[word].run, feeds) for word in others}
    calls |= {peer: model for peer, model in found.items() if model is not None}
    mine = calls["asmdnn"]()
    answers = {peer: call() for peer, call in calls.items()}
    errors = {peer: difference(mine, answer) for peer, answer in answers.items()}
    times = dict(zip(calls, interleaved(list(calls.values()), budget_s, pause_s=PAUSE_S * (count > 1)), strict=True))
    for peer in calls:
        print(row(count, peer, times[peer], times["asmdnn"], errors[peer]))
    for peer in missing:
        print(f"{count:>7} {peer:<16} is not installed: pip install {peer}")
    judged = [answers[peer] for peer in found.keys() - ROUNDING - {*missing} if first == "f32"]
    return all(agree(mine, answer, lambda: output_steps(net.graph)) for answer in judged)


def in_precision(asked: ModelWords, threads: str, precision: str) -> ModelWords:
    return replace(asked, texts={**asked.texts, "threads": threads, "precision": precision})


def row(threads: int, name: str, times: Times, own: Times, error: tuple[float, float]) -> str:
    """A line; the error as a share of the largest value."""
    share = error[0] / error[1] if error[1] else error[0]
    same = f"{'':>6} {'':>9}" if times is own else f"{times.low / own.low:>6.2f} {share:>9.1e}"
    return f"{threads:>7} {name:<16} {times.low * 1e3:>10.3f} {times.median * 1e3:>10.3f} {same}".rstrip()
