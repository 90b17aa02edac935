"""The NKI version of a comparison: stated, overridden or detected, and shown."""

import json

import pytest

import migrate
from migrate.cli import USAGE, main
from migrate.pipeline.nki_version import version_of
from migrate.source import SourceError


@pytest.fixture
def add(checkout):
    return checkout / "samples" / "vector_add"


@pytest.mark.parametrize("text", ["0.3", "0.3.0", " 0.3.1 "])
def test_versions_are_taken_as_people_write_them(text):
    assert version_of(text, "case.toml") == "0.3.0"


@pytest.mark.parametrize("text", ["", "3", "0.9", "2.29", "0.3.0.0", "latest"])
def test_other_versions_are_refused(text):
    with pytest.raises(SourceError, match=r"is not known; there are 0\.1\.0 to 0\.7\.0"):
        version_of(text, "case.toml")


def test_what_is_detected_is_told_with_the_line_that_decides(add, tmp_path):
    for name in ("kernel.cu", "kernel.py", "case.toml"):
        (tmp_path / name).write_text((add / name).read_text().replace('version = "0.6"', ""))
    result = migrate.compare(None, None, case=str(tmp_path / "case.toml"), run="never")
    assert result.nki.version is None
    versions = result.nki.versions
    assert (versions.words, versions.lowest, versions.highest) == (
        "0.2.0 or later",
        "0.2.0",
        "0.7.0",
    )
    assert versions.lower[0].span.file.endswith("kernel.py")
    (told,) = [fact for fact in result.inferred if fact.startswith("NKI ")]
    assert "0.2.0 or later" in told
    assert f"line {versions.lower[0].span.start_line}" in told


def test_the_option_overrides_the_case_and_is_checked_against_the_kernel(add):
    result = migrate.compare(
        None, None, case=str(add / "case.toml"), run="never", nki_version="0.1"
    )
    assert result.nki.version == "0.1.0"
    assert not any(fact.startswith("NKI ") for fact in result.inferred)
    assert {f.rule for f in result.findings} == {"API404"}
    assert result.verdict == "not-faithful"


def test_ir_shows_the_versions_in_both_forms(add, capfdbinary):
    assert main(["ir", str(add / "kernel.py"), "--json"]) == 0
    (kernel,) = json.loads(capfdbinary.readouterr().out)["kernels"]
    assert kernel["versions"]["words"] == "0.2.0 or later"
    assert main(["ir", str(add / "kernel.py")]) == 0
    assert b"NKI versions  0.2.0 or later\n    line " in capfdbinary.readouterr().out


def test_a_cuda_kernel_has_no_nki_version(add, capfdbinary):
    assert main(["ir", str(add / "kernel.cu"), "--json"]) == 0
    (kernel,) = json.loads(capfdbinary.readouterr().out)["kernels"]
    assert kernel["versions"] is None


@pytest.mark.parametrize("verb", ["diff", "score"])
def test_an_unknown_version_is_one_sentence(verb, add, capsys):
    case = str(add / "case.toml")
    assert main([verb, case, "--run", "never", "--nki-version", "9"]) == USAGE
    error = capsys.readouterr().err
    assert "NKI version '9' is not known" in error
    assert error.count("\n") == 1
