"""The table of torch's models in the documentation is the one of its record."""

import json
from pathlib import Path

import pytest

from tools.torch_models.table import table

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDS = sorted((DOCS / "measurements" / "torch").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_page_has_the_table_of_its_record(path: Path) -> None:
    speeds = table(json.loads(path.read_text())).partition("\n\n")[0]
    assert len(speeds.splitlines()) > len(("head", "rule", "mean"))
    assert speeds in (DOCS / "torch.md").read_text()
