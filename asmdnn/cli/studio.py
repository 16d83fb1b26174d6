"""`asmdnn studio`: a page on which a network can be looked at as planned for other CPUs, threads and precisions."""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from asmdnn.cli.model_tools import feeds_of, files_of, native_of, own_options
from asmdnn.cli.models import ModelWords, model_words
from asmdnn.cli.outputs import check_output, write_text
from asmdnn.cli.progress import Progress
from asmdnn.cli.terminal import show_help
from asmdnn.errors import InvalidArguments
from asmdnn.records import replace

if TYPE_CHECKING:
    from asmdnn.network.studio.variants import Variant

THREADS: Final = ("1", "2", "4")
PRECISIONS: Final = ("f32", "fast")
CLASSES: Final = ("zen3", "sapphire_rapids")
MOST: Final = 200  # plans; a page of that many is large
USAGE = """asmdnn studio [--html=FILE] [--measure] MODEL.onnx
A page that needs no other file: graph, memory, kernels and expected cycles of a network, and what would be if threads,
CPU class or precision were others.  All plans are made now; nothing is executed without --measure.
  --html=FILE       where to; default: the model's name with .studio.html, in this directory
  --threads=1,2,4   each is a choice on the page, as are these:
  --machine=zen3,sapphire_rapids   CPU classes; default: this machine's and these two
  --precision=f32,fast
  --measure         run each primitive on this machine, where a plan is made for it; --input=NAME:FILE.npy
  --shape=NAME:1x3x48x320  dims of an input, where the model leaves some open; --constant=NAME:16000 an input's value
Example: asmdnn studio --shape=x:1x3x48x320 --threads=1,8 --machine=zen4,zen5 recogniser.onnx"""


def run(arguments: Sequence[str]) -> int:
    """Write the page.  Raises AsmdnnError for a model that cannot be planned."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE)
        return 0
    asked = model_words("studio", arguments)
    given = own_options("studio", asked, ("html", "input"), ("measure",))
    path = given.get("html") or f"{Path(asked.path).stem}.studio.html"
    check_output("--html", path, asked.path)
    wanted = choices_of(asked)
    with Progress(len(wanted), sys.stderr) as bar:
        variants = []
        for done, words in enumerate(wanted):
            bar.update(done, ", ".join(words.values()))
            variants.append(planned(asked, words, given))
    from asmdnn.network.studio.page import html_of

    write_text("--html", path, html_of(Path(asked.path).name, variants))
    print(f"{asked.path} in {path}: {len(variants)} plans")
    return 0


def choices_of(asked: ModelWords) -> list[dict[str, str]]:
    """The words of every plan, this machine's first.  Raises InvalidArguments for too many."""
    from asmdnn.planning.host import host

    here = host().name
    machines = listed(asked, "machine", tuple(dict.fromkeys((here, *CLASSES))))
    found = [
        {"machine": machine, "precision": precision, "threads": threads}
        for machine, precision, threads in product(
            machines, listed(asked, "precision", PRECISIONS), listed(asked, "threads", THREADS)
        )
    ]
    if len(found) > MOST:
        raise InvalidArguments(f"studio: {len(found)} plans are more than {MOST}: name fewer threads, classes or both")
    return found


def listed(asked: ModelWords, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Values with commas between them, each once.  Raises InvalidArguments for an empty one."""
    words = tuple(dict.fromkeys(asked.texts[name].split(","))) if name in asked.texts else default
    if not all(words):
        raise InvalidArguments(f"--{name}={asked.texts[name]} has an empty word: write it as {','.join(default)}")
    return words


def planned(asked: ModelWords, words: dict[str, str], given: dict[str, str]) -> "Variant":
    """One plan, measured if it was asked for and is of this machine.  Raises AsmdnnError."""
    from asmdnn.network.studio.variants import variant_of
    from asmdnn.planning.host import host
    from asmdnn.runtime.threads import max_threads

    net = replace(asked, texts={**asked.texts, **words}).load(files=files_of(given))
    if not native_of(net):
        raise InvalidArguments(f"studio: {asked.path} computes nothing at run time: there is no plan to show")
    is_here = words["machine"] == host().name and net.engine.threads <= max_threads()
    seconds = net.times(feeds_of(net, given)) if "measure" in given and is_here else []
    return variant_of(net.planned("looked at"), words["precision"], seconds)
