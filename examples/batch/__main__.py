"""Answers for all images in a folder, by several workers; started again, it goes on where it was interrupted.

python -m examples.batch FOLDER MODEL.pack --out=results.jsonl [--by=processes|dask|ray] [--workers=2]

The pack is written by `asmdnn pack --shape=x:1x3x224x224 model.onnx -o model.pack`.  Results are lines of JSON.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import asmdnn as dnn
from examples.batch.engines import ENGINES, Task
from examples.batch.results import add, done_so_far
from examples.batch.work import answers, network

PICTURES: Final = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m examples.batch", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="images, also in folders inside it")
    parser.add_argument("pack", help="a network that takes one image, 1x3xHxW")
    parser.add_argument("--out", type=Path, required=True, help="a file of results, one line of JSON for each image")
    parser.add_argument("--by", choices=ENGINES, default="processes", help="who starts workers; default: processes")
    parser.add_argument("--workers", type=int, default=2, help="default: 2")
    parser.add_argument("--chunk", type=int, default=16, help="images that a worker gets at a time; default: 16")
    given = parser.parse_args(words)
    if not 0 < given.workers <= 1024 or given.chunk <= 0:
        parser.error("--workers must be from 1 to 1024, and --chunk above 0")
    if not given.folder.is_dir():
        parser.error(f"{given.folder} is no folder")
    try:
        network(given.pack)
    except dnn.AsmdnnError as error:
        parser.error(str(error))
    return given


def run(given: argparse.Namespace, task: Task = answers) -> int:
    """How many images could not be read.  Raises RuntimeError if workers die again and again."""
    images = sorted(str(path) for path in given.folder.rglob("*") if path.suffix.lower() in PICTURES)
    known = done_so_far(given.out)
    left = [image for image in images if image not in known]
    chunks = [left[i : i + given.chunk] for i in range(0, len(left), given.chunk)]
    start, count, failed = time.monotonic(), 0, 0
    with given.out.open("a") as stream:
        for rows in ENGINES[given.by](task, given.pack, chunks, given.workers) if chunks else ():
            add(stream, rows)
            count += len(rows)
            failed += sum("error" in row for row in rows)
            show(len(images) - len(left) + count, len(images), count / (time.monotonic() - start))
    print(f"{len(images)} images, {len(images) - len(left)} known before, {failed} could not be read: {given.out}")
    return failed


def show(done: int, total: int, rate: float) -> None:
    """A bar on a terminal; nothing in a pipe."""
    if sys.stderr.isatty():
        filled = 40 * done // total
        text = f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total}, {rate:.0f} a second"
        print(text, end="\n" if done == total else "", file=sys.stderr, flush=True)


def main(words: Sequence[str] | None = None) -> int:
    try:
        return 1 if run(options(words)) else 0
    except (ImportError, OSError, RuntimeError) as error:
        print(f"batch: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
