"""`asmdnn run`: a network from an ONNX file, its answer, what it consists of, and how long it takes."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from asmdnn.bench.peers.models import agree, check_peer, difference, peer_model
from asmdnn.cli.models import HELP, TEXTS, ModelWords, data_of, model_words
from asmdnn.cli.outputs import check_output, write_arrays
from asmdnn.cli.run_report import Report
from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import unknown
from asmdnn.errors import InvalidArguments
from asmdnn.jit.image_file import is_pack
from asmdnn.network.known import as_json, table_of, unknown_in, uses_of_unknown
from asmdnn.network.network import Network
from asmdnn.network.onnx.reader import read_model
from asmdnn.network.quantized.numbers import output_steps
from asmdnn.records import dataclass, field, replace
from asmdnn.runtime.other_work import OtherWork

USAGE = """asmdnn run [OPTION ...] MODEL.onnx
Loads the model, or a network from a pack, runs it, and prints its outputs and the least time of some runs.
{model}
  --input=NAME:FILE.npy    data of an input, with its dims; others are random numbers, or zeros if they are integers
  --output=FILE.npz        write the outputs to a file
  --fallback=numpy         nodes without a kernel are computed by numpy instead of being refused
  --what                   print how often each operator is native, in numpy, or not known, and why
  --json                   print what is said as one JSON object, for programs
  --shape=x:1x8,1x16       run several dims, one after the other; 1x8..64/8 are those of all multiples of 8
  --explain                print the primitives, their formats and the memory; --isa may be any level then
  --check                  prove the plan before it runs
  --profile                print the time of each primitive
  --verify                 compare each primitive with its operators in double precision, and print how far each
                           and each output is from definitions in float64 and f32, largest error first
  --peer=onnxruntime       run the model there too, or in openvino, in turns, and compare
Example: asmdnn run --shape=x:1x3x48x320 --profile recogniser.onnx"""

REPEATS = 20
FAILED = 1


@dataclass(slots=True)
class RunRequest:
    """What the command line asks for."""

    words: ModelWords
    files: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)


FLAGS = ("explain", "check", "profile", "verify", "what", "json")
OWN_TEXTS = ("output", "fallback", "peer")


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 if a primitive, or the peer, disagrees.  Raises AsmdnnError for what cannot be run."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE.format(model=HELP))
        return 0
    request = read(arguments)
    if "json" in request.flags and {"explain", "check"} & request.flags:
        raise InvalidArguments("run: --json says neither what --explain nor what --check says: leave them out")
    if "peer" in request.texts:
        check_peer(request.texts["peer"], is_needed=True)  # before anything is planned
        if is_pack(Path(request.words.path)):
            raise InvalidArguments(f"run: {request.words.path} is a pack, which no peer reads: leave out --peer")
    if "what" in request.flags:
        return what(request)
    every = request.words.each()
    if "output" in request.texts:  # before anything is planned
        check_output("--output", request.texts["output"], request.words.path, *request.files.values())
    if len(every) > 1 and (request.files or "output" in request.texts):
        raise InvalidArguments("run: --input and --output are files for one shape: say one")
    reports, status = [], 0
    for words in every:
        title = " ".join(f"{name}:{'x'.join(map(str, words.shapes[name]))}" for name in request.words.turns)
        reports.append(Report("json" in request.flags, title))
        status |= one(replace(request, words=words), reports[-1])
    if "json" in request.flags:
        print(json.dumps(reports[0].found if len(every) == 1 else {"runs": [each.found for each in reports]}, indent=1))
    return status


def one(request: RunRequest, report: Report) -> int:
    """One shape."""
    net = request.words.load_shown(request.texts.get("fallback"), request.files)
    if "check" in request.flags:
        net.check()
        print("proved: bounds, order, and that no value is overwritten before its last reader")
    if "explain" in request.flags:
        print(net.explain())
        return 0
    return answer(net, request, report)


def what(request: RunRequest) -> int:
    """Print of each operator of the model how it is computed; nothing is run, and open dims may have any size."""
    body, (words, *_) = read_model(request.words.path).body, request.words.each()
    uses = uses_of_unknown(body) if unknown_in(body) else words.load("numpy", guess=True).planned().uses()
    print(json.dumps(as_json(uses), indent=1) if "json" in request.flags else table_of(uses))
    return 0


def answer(net: Network, request: RunRequest, report: Report) -> int:
    """Run the network and say what was asked for."""
    feeds = {name: data_of(name, request.files, *wanted) for name, wanted in net.inputs.items()}
    outputs = net.run(feeds)
    for name, array in outputs.items():
        report.output(name, array)
    if "output" in request.texts:
        write_arrays("--output", request.texts["output"], outputs, request.words.path, *request.files.values())
    fits, others = True, OtherWork()
    if "verify" in request.flags:
        fits = report.verified(net.verify(feeds))
    if "profile" in request.flags:
        report.profiled(net, feeds)
    if "peer" in request.texts:
        fits &= beside(net, request, feeds, outputs, report)
    else:
        (mine,) = least([lambda: net.run(feeds)])
        report.add({"ms": mine * 1e3, "runs": REPEATS}, f"{mine * 1e3:.3f} ms, the least of {REPEATS} runs")
    others.warn(sys.stderr)
    return 0 if fits else FAILED


def beside(
    net: Network, request: RunRequest, feeds: Mapping[str, Any], outputs: Mapping[str, Any], report: Report
) -> bool:
    """The model in the peer, in turns; whether the answers are near."""
    peer, path = request.texts["peer"], request.words.path
    every = {**feeds, **{name: np.asarray(value) for name, value in request.words.constants.items()}}
    theirs = peer_model(peer, path, every, net.engine.threads)
    if theirs is None:  # it is installed, and cannot be imported
        raise InvalidArguments(f"--peer={peer} needs that package: pip install {peer}")
    answer = theirs()
    worst, largest = difference(outputs, answer)
    mine, other = least([lambda: net.run(feeds), theirs])
    found = {"name": peer, "ms": other * 1e3, "difference": float(worst), "largest": float(largest)}
    text = f"{peer} differs by {worst:.2e} of {largest:.2e}\n"
    text += f"{mine * 1e3:.3f} ms, {peer} {other * 1e3:.3f} ms, {other / mine:.2f} times as long"
    report.add({"ms": mine * 1e3, "runs": REPEATS, "peer": found}, text)
    return agree(outputs, answer, lambda: output_steps(net.graph))


def least(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """The least seconds of each, taken in turns."""
    times = [float("inf")] * len(calls)
    for _ in range(REPEATS + 1):  # the first round warms up
        for i, call in enumerate(calls):
            start = perf_counter()
            call()
            times[i] = min(times[i], perf_counter() - start)
    return times


def read(arguments: Sequence[str]) -> RunRequest:
    """The request.  Raises InvalidArguments for a word that is not known."""
    request = RunRequest(model_words("run", arguments))
    for word in request.words.rest:
        name, _, value = word.removeprefix("--").partition("=")
        if name in FLAGS and not value:
            request.flags.add(name)
        elif name in OWN_TEXTS and value:
            request.texts[name] = value
        elif name == "input" and ":" in value:
            key, _, file = value.partition(":")
            request.files[key] = file
        else:
            raise unknown("run", word, TEXTS)
    return request
