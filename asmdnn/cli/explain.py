"""`asmdnn explain`: a problem's kernels instruction by instruction, its schedule, and why this implementation."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Reader
from asmdnn.cli.models import HELP, names_network
from asmdnn.cli.outputs import write_text
from asmdnn.cli.terminal import has_colours, show_help
from asmdnn.cli.unknown import command_words
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

if TYPE_CHECKING:
    from asmdnn import PrimitiveDesc
    from asmdnn.explain.model import Explanation

USAGE = """asmdnn explain --conv [OPTION ...] [--kernel=WHICH] [--json | --html=FILE] PROBLEM
Every instruction of every kernel with its offset, bytes, text, role and the Python line that emitted it; what each
register holds; the schedule; and what each implementation says.  Nothing is executed: works for every ISA level.
  --kernel=WHICH   only this listing: a number, or a part of the name that no other kernel has; none for no listing
  --json           one JSON object on stdout instead of text
  --html=FILE      one page that needs no other file
Options of the problem are those of asmdnn bench, such as --isa=avx512_core --dir=FWD_I --attr-post-ops=relu.
Example: asmdnn explain --conv --isa=avx512_core --html=layer.html mb1ic64ih56oc64oh56kh3ph1
asmdnn explain [--html=FILE [--measure]] [--primitive=N] MODEL.onnx
The primitives of a network, what was fused, formats, memory; as a page with the arena as a picture.
  --measure        run each primitive, on random data or --input=NAME:FILE.npy, and show its time
  --primitive=N    one of them as a problem, with the options above
  --fallback=numpy nodes without a kernel are shown instead of being refused
{model}"""


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """What the command line asks for; `words` describe the problem."""

    words: tuple[str, ...]
    kernel: str | None = None
    as_json: bool = False
    html: str | None = None


def run(arguments: Sequence[str]) -> int:
    """Print or write the explanation.  Raises AsmdnnError for anything that cannot be explained."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE.format(model=HELP))
        return 0
    if names_network(arguments):
        from asmdnn.cli.model_tools import explain_model

        return explain_model(arguments, show_primitive)
    request = read(arguments)
    return show(request, explain_words(request.words))


def show_primitive(pd: "PrimitiveDesc", name: str, options: Mapping[str, str]) -> int:
    """A primitive of a network, with these options."""
    from asmdnn.explain.build import explain

    request = ExplainRequest((), options.get("kernel"), "json" in options, options.get("html"))
    return show(request, explain(pd, name))


def show(request: ExplainRequest, explanation: "Explanation") -> int:
    """Print or write what is asked for."""
    kernels = chosen(explanation, request.kernel)
    if request.html is not None:
        from asmdnn.explain.html.page import html_of

        write_text("--html", request.html, html_of(explanation, kernels))
        print(f"{explanation.problem} explained in {request.html}", file=sys.stderr if request.as_json else sys.stdout)
    if request.as_json:
        from asmdnn.explain.json_form import json_of

        print(json_of(explanation, kernels))
    elif request.html is None:
        from asmdnn.explain.text import text_of

        print(text_of(explanation, kernels, has_colours()))
    return 0


def read(arguments: Sequence[str]) -> ExplainRequest:
    """Separate the command's own options from the problem's.  Raises InvalidArguments."""
    words, kernel, as_json, html = [], None, False, None
    for word in arguments:
        name, equals, value = word.partition("=")
        if name in ("--html", "--kernel") and not value:
            raise InvalidArguments(f"explain: {name} needs a value, such as {name}={'page.html' if 'h' in name else 0}")
        if name == "--html":
            html = value
        elif name == "--kernel":
            kernel = value
        elif name == "--json" and not equals:
            as_json = True
        else:
            words.append(word)
    return ExplainRequest(tuple(words), kernel, as_json, html)


def explain_words(words: Sequence[str]) -> "Explanation":
    """The explanation of the one problem that the words describe.  Raises AsmdnnError."""
    case = one_case("explain", words)
    from asmdnn.bench.descriptors import planning_engine, primitive_desc_of
    from asmdnn.explain.build import explain

    engine = planning_engine(case.settings.isa, threads=case.settings.threads)
    return explain(primitive_desc_of(case, engine), str(case))


def one_case(command: str, words: Sequence[str]) -> AnyCase:
    """The one problem that benchdnn's words describe.  Raises InvalidArguments for none and for several."""
    reader = Reader(partial(command_words, command))
    reader.read(words, Path.cwd())
    if reader.json:
        raise InvalidArguments(f"{command}: --json={reader.json} is not an option here: write --json for all on stdout")
    if len(reader.cases) != 1:
        raise InvalidArguments(
            f"{command}: takes one problem, {len(reader.cases)} are given: write one such as mb1ic64ih56oc64oh56kh3ph1"
        )
    return reader.cases[0]


def chosen(explanation: "Explanation", which: str | None) -> list[int]:
    """The numbers of the kernels to list.  Raises InvalidArguments unless `which` names exactly one."""
    names = [kernel.name for kernel in explanation.kernels]
    if which is None:
        return list(range(len(names)))
    if which == "none":
        return []
    found = [i for i, name in enumerate(names) if (which in name and not which.isdecimal()) or which == str(i)]
    if len(found) != 1:
        raise InvalidArguments(
            f"explain: --kernel={which} names {len(found)} kernels: give a number from 0 to {len(names) - 1}, "
            "or a part of one name"
        )
    return found
