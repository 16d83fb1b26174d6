"""What is in a pack, of problems or of a network: as text, and as JSON."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asmdnn.jit import image_file
from asmdnn.jit.packs import Pack
from asmdnn.planning.host import executable_isas
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A kernel or a plan.  key: what it is found by, "" in a network; bytes: in the file."""

    kind: str
    bytes: int
    isa: str
    key: str
    name: str

    @property
    def text(self) -> str:
        key = f"{self.key[:12]}  " if self.key else ""
        return f"{self.kind:<6} {self.bytes:>8} bytes  {self.isa:<12} {key}{self.name}"


@dataclass(frozen=True, slots=True)
class PackContents:
    """title: a line that says what the file is.  facts: by name, as they were when it was made."""

    path: str
    title: str
    facts: dict[str, Any]
    parts: tuple[PackedPart, ...]


def contents_of_pack(pack: Pack) -> PackContents:
    """Of a pack of problems."""
    names = ("asmdnn", "PeachPy", "generators", "planners", "machines", "l2_bytes")
    facts = {name: pack.facts.get(name) for name in names}
    facts["runs here"] = [isa.name for isa in executable_isas() if isa.name in pack.isas]
    parts = tuple(
        PackedPart(entry.kind, entry.size_bytes, entry.isa, entry.key, entry.name)
        for entry in pack.entries()
        if entry.kind in ("kernel", "plan")
    )
    title = f"{pack.kernels} kernels and {pack.plans} plans for {', '.join(pack.isas)}"
    return PackContents(str(pack.path), title, facts, parts)


def contents_of_image(path: Path) -> PackContents:
    """Of a network's file.  Raises InvalidArguments."""
    image = image_file.read(path)
    text = image.text
    facts = {name: text.get(name) for name in ("asmdnn", "sources", "isa", "machine")}
    facts |= {name: f"{len(section)} bytes" for name, section in image.sections.items()}
    parts = [PackedPart("kernel", k["code"][1], k["isa"], "", k["name"]) for k in text.get("kernels", ())]
    return PackContents(str(path), f"the network {text.get('title')}", facts, tuple(parts))


def print_text(contents: PackContents) -> None:
    print(f"{contents.path}: {contents.title}")
    for name, fact in contents.facts.items():
        shown = (", ".join(fact) or "no level") if name == "runs here" else fact
        print(f"  {name:<11} {shown}")
    for part in contents.parts:
        print(part.text)


def print_json(contents: PackContents) -> None:
    print(json.dumps(asdict(contents), indent=2))
