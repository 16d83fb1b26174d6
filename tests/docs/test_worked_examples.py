"""The pages that add a kernel and a primitive: followed literally in a copy of the tree, all they promise is so."""

from pathlib import Path

import pytest

from tests.docs.following import ROOT, Follower, steps_of
from tests.test_fours import ROOMS, lines_with_fours

PAGES = ("add-a-kernel.md", "add-a-primitive.md")
MOST_SHARED = {"add-a-kernel.md": 2, "add-a-primitive.md": 2}  # files that others share, to be edited


@pytest.mark.parametrize("page", PAGES)
def test_the_page_can_be_followed(page: str, tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    for step in steps_of(ROOT / "docs" / page):
        follower.follow(step)


@pytest.mark.parametrize("page", PAGES)
def test_few_shared_files_are_edited(page: str) -> None:
    steps = steps_of(ROOT / "docs" / page)
    assert len({step.path for step in steps if step.path and step.language == "diff"}) <= MOST_SHARED[page]
    assert any(step.path and step.language == "python" for step in steps)


@pytest.mark.parametrize("page", PAGES)
def test_sizes_are_those_of_types(page: str) -> None:
    """As they must be in the tree, whose own tests would refuse what a reader has copied."""
    texts = [step.text for step in steps_of(ROOT / "docs" / page) if step.language == "python" and step.path]
    assert len(texts) >= len(ROOMS)
    assert not [text for text in texts if lines_with_fours(text)]
