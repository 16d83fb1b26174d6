"""The page that is made of the table of codes."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.encodings.codes import MISSING, TWIN
from tools.encodings.record import CodeRow

PAGE: Final = Path(__file__).parents[2] / "docs" / "asm-encodings.md"
BEGIN: Final = "<!-- tools/encodings writes what follows -->"
_SETS: Final = {
    "AVX512_FP16": "AVX512_FP16", "AMX": "AMX.*", "AVX-512, without FP16": ".*AVX512.*",
    "AVX_VNNI, AVX_IFMA, NE_CONVERT, SHA512, SM3, SM4": "AVX_.*|SHA512.*|.*SM[34]$",
    "AVX, AVX2, FMA, F16C": ".*AVX.*|FMA|F16C|VAES|VPCLMULQDQ",
    "SSE to SHA, AES, GFNI, key locker": "SSE.*|SSSE3|SHA|AES.*|PCLMULQDQ|GFNI.*|.*KL",
}  # fmt: skip


def group_of(row: CodeRow) -> str:
    """The set that a row is counted in: the first whose pattern fits its features."""
    features = row.title.replace(" and ", " ")
    return next((title for title, pattern in _SETS.items() if re.match(f"({pattern})( |$)", features)), "general")


def made_part(rows: Sequence[CodeRow]) -> str:
    """Counts, and what is not written, named."""
    groups = {title: [row for row in rows if group_of(row) == title] for title in (*_SETS, "general")}
    head = ("codes", "written", "the same, otherwise", "left out", "GNU as", "llvm-mc", "emulated")
    lines = [f"| set | {' | '.join(head)} |", "|---|" + "---:|" * len(head)]
    lines += [_counts(title, group) for title, group in {**groups, "all": rows}.items()]
    checked = sum(row.checked for row in rows)
    lines += ["", f"{checked:,} encodings were read as they were asked for, 0 were not.", ""]
    for why in dict.fromkeys(row.why for row in rows if row.why not in ("", TWIN)):
        named = [row.code for row in rows if row.why == why]
        lines.append(f"- {why}, {len(named)}: `{' '.join(named)}`")
    return "\n".join(lines) + "\n"


def _counts(title: str, rows: Sequence[CodeRow]) -> str:
    written = [row for row in rows if row.name]
    twins = sum(row.why == TWIN for row in rows)
    judged = [sum(bool(count) for count in column) for column in zip(*[row[5:8] for row in written], strict=True)]
    cells = [len(rows), len(written), twins, len(rows) - len(written) - twins, *judged]
    return f"| {title} | {' | '.join(map(str, cells))} |"


def missing(rows: Sequence[CodeRow]) -> list[str]:
    """Codes that are not written, without a reason."""
    return [row.code for row in rows if row.why == MISSING]


def page(rows: Sequence[CodeRow]) -> str:
    """The whole page."""
    return f"{PAGE.read_text().partition(BEGIN)[0]}{BEGIN}\n\n{made_part(rows)}"
