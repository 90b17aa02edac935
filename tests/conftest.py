"""Hypothesis profiles, and the paths tests need.

`HYPOTHESIS_PROFILE=ci` (as `make test` sets it) draws 500 examples a property, `dev`
(the default) fewer, so that a single file stays quick to run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Without deadlines: how long an example takes depends on the machine.
settings.register_profile(
    "ci",
    max_examples=500,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("dev", max_examples=50, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder of the repository."""
    return Path(__file__).resolve().parent.parent
