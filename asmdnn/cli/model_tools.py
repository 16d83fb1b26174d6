"""`asmdnn explain|analyze|dump|prove MODEL.onnx`: the tools for problems, on the primitives of a network."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asmdnn.cli.models import TEXTS, ModelWords, data_of, model_words, number, said_or_one
from asmdnn.cli.outputs import write_text
from asmdnn.cli.progress import Progress
from asmdnn.cli.unknown import unknown
from asmdnn.errors import InvalidArguments, PlanError
from asmdnn.runtime.other_work import OtherWork

if TYPE_CHECKING:
    from asmdnn.network.compiled import CompiledSegment
    from asmdnn.network.network import Network
    from asmdnn.network.step_list import NetworkStep

VIOLATED = 1
Show = Callable[[Any, str, Mapping[str, str]], int]  # of a primitive descriptor, what it is called, the options


def own_options(command: str, asked: ModelWords, valued: Sequence[str], flags: Sequence[str]) -> dict[str, str]:
    """What is left of the words, as options of a command.  Raises InvalidArguments for others."""
    found = {}
    for word in asked.rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if not ((name in valued and value) or (name in flags and not equals)):
            raise unknown(command, word, TEXTS)
        found[name] = value
    return found


def step_of(net: "Network", which: str) -> "tuple[str, NetworkStep]":
    """A primitive by its number, and what it is called.  Raises InvalidArguments."""
    steps = [step for segment in native_of(net) for step in segment.steps]
    at = number("primitive", which)
    if at >= len(steps):
        raise InvalidArguments(f"--primitive={which}: the network has {len(steps)}, give a number from 0 on")
    return f"primitive {at} {steps[at].label}", steps[at]


def native_of(net: "Network") -> "list[CompiledSegment]":
    from asmdnn.network.compiled import CompiledSegment

    return [segment for segment in net.segments if isinstance(segment, CompiledSegment)]


def feeds_of(net: "Network", given: dict[str, str]) -> dict[str, Any]:
    """Data for the inputs: of a file for the one that is named, random for others."""
    return {key: data_of(key, files_of(given), *wanted) for key, wanted in net.inputs.items()}


def files_of(given: dict[str, str]) -> dict[str, str]:
    """The file of the input that is named.  Raises InvalidArguments."""
    name, _, file = given.get("input", "").partition(":")
    if "input" in given and not (name and file):
        raise InvalidArguments(f"--input={given['input']} is not of the form --input=NAME:FILE.npy")
    return {name: file} if file else {}


def explain_model(arguments: Sequence[str], show: Show) -> int:
    """As text or page; or one primitive as `asmdnn explain` shows a problem.  Raises AsmdnnError."""
    asked = model_words("explain", arguments)
    given = own_options("explain", asked, ("html", "primitive", "kernel", "input", "fallback"), ("measure", "json"))
    net = asked.load_shown(given.get("fallback"), files_of(given))
    if "primitive" in given:
        name, step = step_of(net, given["primitive"])
        return show(step.pd, f"{asked.path} {name}", given)
    for option in ("kernel", "json"):
        if option in given:
            raise InvalidArguments(f"explain: --{option} is about one primitive: name it, as in --primitive=0")
    if "html" not in given:
        print(net.explain())
        return 0
    feeds, others = feeds_of(net, given) if "measure" in given else None, OtherWork()
    with Progress(2, sys.stderr) as progress:
        progress.update(1, "run each primitive" if feeds else "draw the page")
        page = net.page(feeds, title=Path(asked.path).name)
        write_text("--html", given["html"], page, asked.path)
    if feeds:
        others.warn(sys.stderr)
    print(f"{asked.path} explained in {given['html']}")
    return 0


def analyze_model(arguments: Sequence[str], show: Show) -> int:
    """Every primitive, measured; or one as `asmdnn analyze` shows a problem.  Raises AsmdnnError."""
    asked = model_words("analyze", arguments)
    given = own_options("analyze", asked, ("primitive", "mcpu", "svg", "png", "input"), ("measure", "json"))
    net = asked.load_shown(files=files_of(given))
    if "primitive" in given:
        name, step = step_of(net, given["primitive"])
        return show(step.pd, f"{asked.path} {name}", given)
    for option in given.keys() - {"input"}:
        raise InvalidArguments(f"analyze: --{option} is about one primitive: name it, as in --primitive=0")
    others = OtherWork()
    print(net.analyze(feeds_of(net, given)))
    others.warn(sys.stderr)
    return 0


def dump_model(arguments: Sequence[str]) -> int:
    """All kernels as files.  Raises AsmdnnError."""
    asked = model_words("dump", arguments)
    given = own_options("dump", asked, ("output", "format"), ())
    if "output" not in given:
        raise InvalidArguments("dump: no output directory is given: say --output=DIR")
    net = asked.load_shown()
    formats = given.get("format", "bin,s,o,h").split(",")
    net.dump(given["output"], formats)
    print(f"the kernels of {asked.path} in {given['output']}: {', '.join(formats)}, and manifest.json")
    return 0


def prove_model(arguments: Sequence[str], prove: Callable[[str, Sequence[Sequence[Any]], int, str], int]) -> int:
    """The plans of all shapes that are said, then every kernel by `prove`, which takes the level, specs by their code,
    how many plans there are, and in how many processes; the exit status.  Raises AsmdnnError."""
    from asmdnn.jit.digests import code_text
    from asmdnn.network.dumping import specs_of

    asked = model_words("prove", arguments)
    jobs = own_options("prove", asked, ("jobs",), ()).get("jobs", "")
    kernels, plans, nets = dict[str, dict[Any, None]](), 0, networks_of(asked)
    with Progress(len(nets), sys.stderr) as progress:
        for done, (label, at) in enumerate(nets):
            progress.update(done, f"check the plan{label}")
            net = at()
            planned = net.planned("proved")
            if broken := violation_of(planned):
                progress.clear()
                which = f"the plan of {asked.path}{label}"
                print(f"violation at level {net.engine.isa}: {which} breaks the rule 'plan': {broken}")
                return VIOLATED
            for spec in specs_of(planned):
                kernels.setdefault(code_text(spec), {})[spec] = None
            plans += len(native_of(net))
    return prove(net.engine.isa, [[*specs] for specs in kernels.values()], plans, jobs)


def networks_of(asked: ModelWords) -> "list[tuple[str, Callable[[], Network]]]":
    """What makes the network of each shape that is said, and words for it.  Raises InvalidArguments."""
    if not asked.turns:
        return [("", asked.load_shown)]
    net = asked.open_network("prove")
    shapes = [said_or_one(net, one.shapes) for one in asked.each()]
    return [(f" for {shape}", partial(net.at, shape)) for shape in shapes]


def violation_of(planned: Any) -> str:
    """What the plan violates, or ""."""
    try:
        planned.check()
    except PlanError as error:
        return str(error)
    return ""
