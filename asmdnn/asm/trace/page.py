"""The page of a trace: style and script are files beside this one, the steps are JSON in it."""

import json
import linecache
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from asmdnn.asm.trace.step import TraceStep
from asmdnn.isa.code import Line

_HERE: Final = Path(__file__).parent
LANES: Final = ("f4", "f8", "i1", "u1", "i2", "i4", "u4", "i8")  # the types that the page shows lanes in


def page_of(prototype: str, facts: str, data: Mapping[str, Any]) -> str:
    """The whole document.  data: what the script reads."""
    title, steps = escape(prototype), json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    body = (_HERE / "page.html").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{title}</h1><p>{escape(facts)}</p></header>\n{body}"
        f"<script>const TRACE = {steps};\n{script}</script>\n</body>\n</html>\n"
    )


def data_of(
    listing: Sequence[Line],
    steps: Sequence[TraceStep],
    entry: Mapping[str, bytes],
    memory: Mapping[str, tuple[bytes, str]],
) -> dict[str, Any]:
    """Lines, steps and the state at the call; bytes are hexadecimal."""
    sources: dict[str, list[str]] = {}
    return {
        "lines": [_line(line, sources) for line in listing],
        "sources": sources,
        "steps": [_step(step) for step in steps],
        "entry": {name: data.hex() for name, data in entry.items()},
        "lanes": next((element for _, element in memory.values() if element in LANES), "f4"),
        "memory": {name: [data.hex(), element] for name, (data, element) in memory.items()},
    }


def _line(line: Line, sources: dict[str, list[str]]) -> dict[str, Any]:
    path, (file, _, number) = line.detail.path, line.source.partition(":")
    if path and path not in sources:
        sources[path] = [text.rstrip("\n") for text in linecache.getlines(path)]
    holders = {_key(str(register)): purpose for register, purpose in line.detail.holders}
    return {
        "at": f"{line.offset:x}", "text": line.text, "effect": line.detail.effect, "path": path, "file": file,
        "number": int(number or 0), "held": holders,
    }  # fmt: skip


def _key(name: str) -> str:
    """Vectors go by number, whatever their width."""
    return f"v{name[3:]}" if name[1:3] == "mm" and name[0] in "xyz" else name


def _step(step: TraceStep) -> dict[str, Any]:
    found: dict[str, Any] = {"line": step.line, "changed": {name: data.hex() for name, data in step.changed.items()}}
    for title, spans in (("read", step.read), ("written", step.written)):
        if spans:
            found[title] = dict(spans)
    if step.stored:
        found["stored"] = {name: [[at, data.hex()] for at, data in pieces] for name, pieces in step.stored.items()}
    return found
