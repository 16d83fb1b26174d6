"""The plans that a tree makes, as JSON on stdout: the half of replay_plans.py that also runs on older revisions.

stdin has the problems in words of `asmdnn bench`, each with the names of its engines, and these in words of `Engine`.
The result: {"problems": {problem: {engine: digest}}, "plans": {digest: {field: text}}}.  A problem that the tree cannot
read is left out; of one that it refuses, or fails at, the only field is the reason, in the place of an implementation.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import asmdnn as dnn
from asmdnn.bench.options import Mistake, Reader
from asmdnn.planning.codec import plan_text

LONGEST_TEXT = 100  # that a field shows; of others the beginning, and a digest
DIGEST_DIGITS = 12

Fields = dict[str, str]


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:DIGEST_DIGITS]


def text_of(value: Any) -> str:
    """What a field shows of a value; "" of what is empty or false, so that a flag that came later differs nowhere."""
    if not value:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}... {digest(text.encode())}"


def array_text(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)} {digest(array.tobytes())}"


def fields_of(plan: Any) -> Fields:
    """A plan as texts, in the order in which it is read: kernels by their names, arrays by digests of their bytes."""
    names = [spec.name for spec in plan.specs]
    found: Fields = {}
    for name, value in plan_text(plan, array_text).items():
        if name == "phases":
            for i, phase in enumerate(value):
                kernels = ", ".join(names[number] for number in phase["kernels"])
                words = {**phase, "kernels": kernels, "arguments": ", ".join(map(str, phase["arguments"]))}
                found |= {f"phase {i}, {of}": text_of(each) for of, each in words.items()}
        elif isinstance(value, Mapping):
            found |= {f"{name} {of}": text_of(each) for of, each in value.items()}
        else:
            found[name] = text_of(value)
    return {name: text for name, text in found.items() if text}


def request_of(words: Sequence[str]) -> Any:
    """The description and attributes of a problem, the reason why it is none, or None where the words are unknown."""
    try:
        (case,) = Reader().stream(words, Path())
    except (dnn.AsmdnnError, ValueError):
        return None
    if isinstance(case, Mistake) or case.settings.unbuilt:
        return None
    try:
        work = case.driver.work(case)
        return work if isinstance(work, str) else work.describe()
    except Exception as error:  # also what only this tree gets wrong
        return reason(error)


def planned(request: Any, engine: dnn.Engine) -> Fields:
    if isinstance(request, str):
        return {"implementation": text_of(f"refused: {request}")}
    desc, attr = request
    try:
        return fields_of(dnn.primitive_desc(desc, attr=attr, engine=engine).plan)
    except Exception as error:
        return {"implementation": text_of(f"refused: {reason(error)}")}


def reason(error: Exception) -> str:
    """What a tree says, or how it fails."""
    return str(error) if isinstance(error, dnn.AsmdnnError) else f"{type(error).__name__}: {error}"


def collect(
    problems: Sequence[tuple[Sequence[str], Sequence[str]]], engines: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What stdout gets."""
    made = {name: dnn.Engine(**words) for name, words in engines.items()}
    found: dict[str, dict[str, str]] = {}
    plans: dict[str, Fields] = {}
    for words, names in problems:
        if (request := request_of(words)) is None:
            continue
        of_problem = found.setdefault(" ".join(words), {})
        for name in names:
            fields = planned(request, made[name])
            of_problem[name] = digest(json.dumps(fields).encode())
            plans[of_problem[name]] = fields
    return {"problems": found, "plans": plans}


if __name__ == "__main__":
    json.dump(collect(**json.load(sys.stdin)), sys.stdout)
