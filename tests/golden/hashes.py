"""sha256 of every corpus spec's bytes.  `python -m tests.golden.hashes FILE ...` prints a sample, by two threads."""

import json
import sys
import threading
from collections.abc import Iterable
from hashlib import sha256

from asmdnn.corpus.families import specs_of
from asmdnn.generators.contract import Spec
from asmdnn.runtime.kernels import generate
from tests.generators.codes import exhaustive
from tests.support.together import at_once

THREADS = 2
EVERY = 8  # each has to differ by the order of a set or by what threads share, which kernels of a file do alike


def hashes(specs: Iterable[Spec]) -> dict[str, str]:
    """By spec name."""
    return {spec.name: sha256(generate(spec)).hexdigest() for spec in specs}


def sample(file: str) -> list[Spec]:
    """Of a file of the corpus, what is generated more than once."""
    return [spec for spec in specs_of(file) if spec not in exhaustive()][::EVERY]


def hashes_of_threads(specs: Iterable[Spec]) -> list[dict[str, str]]:
    """What threads get that start together."""
    barrier, results = threading.Barrier(THREADS), []

    def work(_: int) -> None:
        barrier.wait()
        results.append(hashes(specs))

    at_once(work, THREADS)
    return results


if __name__ == "__main__":
    print(json.dumps(hashes_of_threads([spec for file in sys.argv[1:] for spec in sample(file)])))
