"""Golden texts of the IR: `UPDATE_GOLDEN=1 pytest tests/ir` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.goldens import check


@pytest.fixture
def golden(checkout: Path) -> Callable[[str, str], None]:
    """Compares a text with the golden file of a name."""

    def compare(name: str, text: str) -> None:
        check(checkout / "tests" / "golden" / "ir" / f"{name}.txt", text)

    return compare
