"""`asmdnn pack`: the kernels and plans of problems in one file, made for any ISA level on any machine."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import asmdnn as dnn
from asmdnn.bench import batch_files
from asmdnn.bench.descriptors import work_or_reason
from asmdnn.bench.driver import AnyCase, Case
from asmdnn.bench.options import Reader
from asmdnn.cli.models import HELP, names_model
from asmdnn.cli.pack_contents import contents_of_image, contents_of_pack, print_json, print_text
from asmdnn.cli.pack_model import pack_model
from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import command_words, unknown, value_of
from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.isa.levels import isa_of
from asmdnn.jit.image_file import is_image
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.packing import read_pack, write_pack
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import replace
from asmdnn.types import IsaName

USAGE = """asmdnn pack [OPTION] WHAT ... -o FILE    make a pack
asmdnn pack [OPTION] MODEL.onnx -o FILE  make one of a network: plan, kernels and packed weights
asmdnn pack --list FILE [--json]         what is in one; --json: one JSON object

WHAT is a problem set ({sets}), a batch file, or a problem as benchdnn writes it.
Drivers and options of `asmdnn bench` hold for what comes after them: --matmul, --ip, --eltwise, ...; --dir, --mb,
--stag, --wtag, --dtag, --attr-post-ops.
  -o FILE, --output=FILE       the pack
  --isa=LEVEL,...              levels to make kernels for, also those that this machine lacks (default: its best)
  --machine=NAME               the CPU class that will run it, such as sapphire_rapids (default: this machine's)
  --l2-bytes=BYTES             L2 of the machine that will run it (default: that of the machine)
Every problem brings both forward propagation kinds, and the reorders between plain layouts and those that it chooses.
Options of a model, for one level alone; --shape=x:1x48,2x48 or --shape=x:1..8x48..96/8 packs all these shapes;
--fallback=numpy has numpy compute the nodes that have no kernel:
{model}
Example: asmdnn pack --mb=1 --dir=FWD_I,FWD_B --attr-post-ops=relu resnet_50 --isa=avx512_core,avx2 -o resnet.pack
Use:     asmdnn.load_pack("resnet.pack")"""

OWN = {
    "-o": "output", "--output": "output", "--isa": "isa", "--machine": "machine", "--l2-bytes": "l2_bytes",
    "--list": "list",
}  # fmt: skip
EXAMPLES = {
    "output": "-o resnet.pack", "isa": "--isa=avx2", "machine": "--machine=zen3", "l2_bytes": "--l2-bytes=1048576",
    "list": "--list resnet.pack",
}  # fmt: skip


class PackRequest(NamedTuple):
    """The command line, sorted: own options by name, and bench's words."""

    own: dict[str, str]
    words: list[str]


def run(arguments: Sequence[str]) -> int:
    """Make or list a pack.  Raises AsmdnnError."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE.format(sets=", ".join(batch_files.problem_sets()), model=HELP))
        return 0
    listing = any(word.partition("=")[0] == "--list" for word in arguments)
    if names_model(arguments) and not listing:
        return pack_model(arguments)
    own, words = _sorted(arguments)
    if listing:
        _list(own, words)
        return 0
    if "output" not in own:
        if words and words[0].startswith("-") and "=" not in words[0]:
            raise unknown("pack", words[0])
        raise InvalidArguments("pack: name the file to write, as in -o resnet.pack")
    l2_bytes = _number("--l2-bytes", own.get("l2_bytes", "0"))
    machine = own.get("machine", "")
    levels = _levels(own.get("isa"), machine)
    engines = [dnn.Engine(isa=name, threads=1, l2_bytes=l2_bytes, machine=machine) for name in levels]
    cases = _cases(words)
    works = [work_or_reason(case) for case in cases]
    skipped = {str(case.problem): work for case, work in zip(cases, works, strict=True) if isinstance(work, str)}
    wanted = [both for work in works if not isinstance(work, str) for both in _both_kinds(*work.describe())]
    descs = [pd for desc, attr in wanted for engine in engines for pd in _with_reorders(desc, attr, engine)]
    if not descs:
        raise Unimplemented(f"pack: no problem is left to pack: {next(iter(skipped.values()))}")
    facts = {"l2_bytes": engines[0].l2_bytes, "problems": [str(case) for case in cases]}
    pack = write_pack(own["output"], descs, facts)
    size = Path(pack.path).stat().st_size / 1024
    print(f"{pack.path}: {pack.kernels} kernels and {pack.plans} plans for {', '.join(pack.isas)}, {size:.0f} KiB")
    for problem, reason in skipped.items():
        print(f"skipped {problem}: {reason}")
    return 0


def _list(own: Mapping[str, str], words: Sequence[str]) -> None:
    """Print what is in a pack."""
    if words not in ([], ["--json"]) or len(own) > 1:
        raise InvalidArguments("pack: --list takes one file, --json and nothing else")
    if names_model([own["list"]]):
        model = shown(own["list"])
        raise InvalidArguments(f"pack: --list is for packs, {model} is a model: asmdnn run --explain shows one")
    path = Path(own["list"]).absolute()
    show_pack = print_json if words else print_text
    show_pack(contents_of_image(path) if is_image(path) else contents_of_pack(read_pack(path)))


def _sorted(arguments: Sequence[str]) -> PackRequest:
    """Own options may stand anywhere, as `-o FILE`, `--isa NAME` or `--isa=NAME`; a set or file is a batch."""
    own: dict[str, str] = {}
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        name = OWN.get(word.partition("=")[0], "")
        if name:
            own[name] = value_of("pack", word, rest, EXAMPLES[name])
        elif not word.startswith("-") and (word in batch_files.problem_sets() or Path(word).is_file()):
            words.append(f"--batch={word}")
        else:
            words.append(word)
    return PackRequest(own, words)


def _cases(words: Sequence[str]) -> list[AnyCase]:
    reader = Reader(partial(command_words, "pack"))
    reader.read(words, Path.cwd())
    if not reader.cases:
        raise InvalidArguments("pack: no problem is given; name a problem set, such as resnet_50, or a problem")
    if words[-1].startswith("--") and not words[-1].startswith("--batch="):
        raise InvalidArguments(f"pack: {words[-1]} stands after the last problem: options go in front")
    distinct = {str(case): case for case in _without_bench(reader.cases)}
    return list(distinct.values())


def _without_bench(cases: Sequence[AnyCase]) -> Iterator[AnyCase]:
    """The cases without what concerns a measurement and the machine alone."""
    for case in cases:
        settings = replace(case.settings, mode="C", isa="", threads=0, peer="", max_ms=3000)
        yield Case(case.driver, settings, replace(case.problem, name=""))


def _levels(text: str | None, machine: str) -> list[IsaName]:
    if text is None:
        return [isa_of(dnn.Engine(threads=1, machine=machine).isa).name]
    return [isa_of(name).name for name in dict.fromkeys(text.split(","))]


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise InvalidArguments(f"pack: {name}={text}: must be a number of bytes")
    return int(text)


def _both_kinds(desc: Any, attr: dnn.Attr) -> Iterator[tuple[Description, dnn.Attr]]:
    """Training and inference plan alike, and a process that infers has a bias too, which no --dir says."""
    kinds = (dnn.PropKind.forward_training, dnn.PropKind.forward_inference)
    if getattr(desc, "prop_kind", None) not in kinds:
        yield desc, attr
        return
    for kind in kinds:
        yield replace(desc, prop_kind=kind), attr


def _with_reorders(desc: Description, attr: dnn.Attr, engine: dnn.Engine) -> Iterator[dnn.PrimitiveDesc]:
    """The primitive, and what brings plain tensors into its formats and its result back."""
    pd = dnn.primitive_desc(desc, attr, engine)
    yield pd
    if isinstance(desc, Reorder):
        return
    for name, chosen in pd.plan.tensors.items():
        plain = dnn.MemoryDesc(chosen.dims, chosen.dtype, "abcdefghijkl"[: chosen.ndims])
        if plain != chosen:
            pair = (chosen, plain) if name in pd.plan.outputs else (plain, chosen)
            yield dnn.primitive_desc(Reorder(*pair), engine=engine)
