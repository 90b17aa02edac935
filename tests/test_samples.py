"""The sample pairs: they are faithful, and each of their faults is found where it was planted."""

import re
import shutil
from pathlib import Path
from typing import Literal

import pytest

import migrate
from migrate.case import load
from migrate.case.faults import Fault, apply
from migrate.case.faults import load as load_faults
from migrate.results import Comparison, Finding
from migrate.source import read

SAMPLES = sorted((Path(__file__).resolve().parent.parent / "samples").glob("*/case.toml"))
FAULTS = [
    pytest.param(path.parent, fault, id=f"{path.parent.name}-{fault.id}")
    for path in SAMPLES
    for fault in load_faults(path.parent / "faults.toml")
]
ACCOUNTED = {"matched", "transformed", "not-needed"}


def named(path: Path) -> str:
    return path.parent.name


@pytest.mark.parametrize("path", SAMPLES, ids=named)
def test_a_sample_is_whole(path: Path) -> None:
    case = load(path)
    assert case.cuda.file
    assert case.nki.file
    assert case.cuda.launch[0].kernel in case.path(case.cuda.file).read_text()
    assert case.sizes
    readme = (path.parent / "README.md").read_text()
    assert readme.startswith(f"# {path.parent.name}\n")


@pytest.mark.parametrize("path", SAMPLES, ids=named)
def test_its_faults_can_be_planted(path: Path) -> None:
    kernel = read(path.parent / "kernel.py")
    faults = load_faults(path.parent / "faults.toml")
    assert len({fault.id for fault in faults}) == len(faults) >= 6
    for fault in faults:
        faulty = apply(fault, kernel)
        assert faulty.text != kernel.text
        assert faulty.lines


@pytest.mark.parametrize("run", ["never", "auto"])
@pytest.mark.parametrize("path", SAMPLES, ids=named)
def test_a_sample_is_faithful(path: Path, run: Literal["never", "auto"]) -> None:
    result = migrate.compare(None, None, case=str(path), run=run)
    assert result.verdict == "faithful"
    assert result.reasons
    assert (result.coverage.cuda, result.coverage.nki) == (1.0, 1.0)
    assert result.score.fidelity == 100.0
    assert result.findings == ()
    for construct in result.constructs:
        assert construct.verdict in ACCOUNTED, f"{construct.kind}: {construct.reason}"
    assert {made.status for made in result.runs} == ({"pass"} if run == "auto" else set())


@pytest.mark.parametrize(("folder", "fault"), FAULTS)
def test_a_fault_is_found(folder: Path, fault: Fault, tmp_path: Path) -> None:
    result, here = planted(folder, fault, tmp_path)
    assert here, [f"{f.rule} {f.span}: {f.message}" for f in result.findings]
    if fault.effect in {"wrong", "rejects"}:
        assert result.verdict == "not-faithful"
        assert any(finding.severity != "note" for finding in here)
        assert result.score.fidelity is not None
        assert result.score.fidelity <= 80
    else:
        assert fault.family in {finding.family for finding in here}


def planted(folder: Path, fault: Fault, scratch: Path) -> tuple[Comparison, list[Finding]]:
    """The sample with the fault, read but not run, and the findings at the edited lines."""
    for name in ("kernel.cu", "kernel.py"):
        shutil.copy(folder / name, scratch / name)
    before, sizes, after = (folder / "case.toml").read_text().partition("[sizes]\n")
    # Whole tiles, the first position, show few faults and take the longest.
    listed, rest, tensors = after.partition("\n\n")
    shorter = re.sub(r"\[\d+, ", "[", listed)
    (scratch / "case.toml").write_text(before + sizes + shorter + rest + tensors)
    faulty = apply(fault, read(scratch / "kernel.py"))
    (scratch / "kernel.py").write_text(faulty.text)
    result = migrate.compare(None, None, case=str(scratch / "case.toml"), run="never")
    here = [f for f in result.findings if any(f.span.covers(line) for line in faulty.lines)]
    return result, here


def test_there_are_samples() -> None:
    assert len(SAMPLES) == 15
