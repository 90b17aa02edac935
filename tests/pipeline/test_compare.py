"""Whole comparisons of small pairs: verdict, reasons, findings and constructs together."""

from __future__ import annotations

import pytest

import migrate
from migrate.results import Comparison
from migrate.rules.registry import BY_ID
from migrate.source import SourceError
from tests.pairs import ADD, ADD_NKI, XY, case, combined, cuda, nki, tensor, tiles

OPAQUE = cuda("float s = frobnicate(x[i]); out[i] = s + y[i];")
UNKNOWN = tiles("nisa.tensor_copy(dst=a, src=vars()['b'])")


def compared(left: str, right: str, stated: str | None = None, run: str = "never") -> Comparison:
    return migrate.compare_text(left, right, case=stated or case(), run=run)  # type: ignore[arg-type]


def rules(result: Comparison) -> list[str]:
    return [finding.rule for finding in result.findings]


# -- texts ------------------------------------------------------------------------------


def test_texts_have_names() -> None:
    result = compared(ADD, combined("subtract"))
    assert (result.cuda.file, result.nki.file) == ("kernel.cu", "kernel.py")
    assert {f.span.file for f in result.findings} == {"kernel.py"}


def test_texts_and_files_give_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    stated = case().replace("[sizes]", '[nki]\ntarget = "trn2"\n[sizes]')
    for name, text in (("kernel.cu", ADD), ("kernel.py", ADD_NKI)):
        (tmp_path / name).write_text(text)
    (tmp_path / "case.toml").write_text(
        stated.replace("[cuda]", '[cuda]\nfile = "kernel.cu"').replace(
            "[nki]", '[nki]\nfile = "kernel.py"'
        )
    )
    from_files = migrate.compare("kernel.cu", "kernel.py", case="case.toml", run="never")
    assert compared(ADD, ADD_NKI, stated).to_json() == from_files.to_json()


def test_a_case_is_not_needed() -> None:
    result = migrate.compare_text(
        ADD + "void run(float* x, float* y, float* out, int n) {\n"
        "  k<<<(n + 127) / 128, 128>>>(x, y, out, n);\n}\n",
        ADD_NKI,
        run="never",
    )
    assert result.verdict == "faithful"
    assert result.inferred


def test_a_case_as_text_chooses_the_kernels() -> None:
    other = ADD.replace("void k(", "void other(").replace("+ y[i]", "- y[i]")
    stated = case().replace("[cuda]", '[cuda]\nkernel = "k"')
    assert compared(other + ADD, ADD_NKI, stated).verdict == "faithful"
    with pytest.raises(SourceError, match="2 kernels"):
        compared(other + ADD, ADD_NKI)


@pytest.mark.parametrize("key", ["fill", "expect"])
def test_a_case_as_text_reads_no_file(key: str) -> None:
    role = "in" if key == "fill" else "out"
    stated = case(tensor("x", role=role, **{key: "x.npy"}))
    with pytest.raises(SourceError, match=r"x\.npy.* has no folder"):
        compared(ADD, ADD_NKI, stated)


@pytest.mark.parametrize("left", ["", "\0", "int x"])
def test_texts_are_checked_like_files(left: str) -> None:
    with pytest.raises(SourceError):
        compared(left, ADD_NKI)


# -- nothing is proved or refuted without a reason --------------------------------------


@pytest.mark.parametrize("run", ["never", "auto"])
@pytest.mark.parametrize(
    ("left", "right"),
    [(OPAQUE, ADD_NKI), (OPAQUE, combined("subtract")), (ADD, UNKNOWN), (OPAQUE, UNKNOWN)],
    ids=["cuda, right", "cuda, wrong", "nki", "both"],
)
def test_what_is_not_understood_leaves_it_undetermined(left: str, right: str, run: str) -> None:
    result = compared(left, right, run=run)
    assert (result.verdict, result.confidence) == ("undetermined", 0.0)
    assert result.score.fidelity is None
    assert any("not understood" in why or "not read" in why for why in result.reasons)
    assert not any(f.effect in {"wrong", "rejects"} for f in result.findings)


def test_a_refusal_stands_whatever_else_was_understood() -> None:
    right = tiles(
        "nisa.dropout(dst=a, data=b, prob=0.5)\n"
        "nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.divide)"
    )
    result = compared(ADD, right)
    assert result.verdict == "not-faithful"
    assert rules(result) == ["HW201"]


# -- the reference at fault -------------------------------------------------------------


@pytest.mark.parametrize("run", ["never", "auto"])
@pytest.mark.parametrize(
    ("left", "rule"),
    [
        (cuda("out[i] = x[i] + (i > 0 ? y[i] : y[n]);"), "CUDA501"),
        (
            cuda(
                """
                out[i < n / 2 ? i : n / 2 + i % 2] = x[i] + y[i];
                if (i > n / 2 + 1) out[i] = 0.0f;
                """
            ),
            "CUDA502",
        ),
        (cuda("float s; out[i] = (i > 0 ? x[i] : s) + y[i];"), "CUDA503"),
    ],
)
def test_a_faulty_reference(left: str, rule: str, run: str) -> None:
    """NKI adds everywhere, which is right wherever CUDA says what right is."""
    right = ADD_NKI
    if rule == "CUDA502":
        right = tiles(
            """
            nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
            first = max(min(n // 2 + 2 - start, size), 0)
            if first < size:
                nisa.memset(dst=a[:, first:size], value=0.0)
            """
        )
    result = compared(left, right, run=run)
    assert rule in rules(result)
    assert result.verdict == "undetermined", result.reasons
    assert result.reasons[0].startswith(f"the reference is at fault: {rule} at kernel.cu:")
    assert all(finding.points == 0.0 for finding in result.findings)


def test_what_is_wrong_besides_the_fault_is_told() -> None:
    result = compared(cuda("out[i] = x[i] + (i > 0 ? y[i] : y[n]);"), combined("subtract"))
    assert result.verdict == "not-faithful"
    assert set(rules(result)) == {"MAP103", "CUDA501"}
    assert any("the reference is at fault" in why for why in result.reasons)


def test_a_fault_that_only_a_run_shows() -> None:
    """Which element is read depends on data: only running tells that it lies outside."""
    left = cuda("out[i] = x[(int)(y[i] * 1000.0f)];")
    right = tiles("nisa.tensor_copy(dst=a, src=vars()['b'])")
    result = compared(left, right, run="auto")
    assert result.verdict == "undetermined"
    assert "CUDA501" in rules(result)
    assert [run.status for run in result.runs][:1] == ["not-run"]


# -- outputs ----------------------------------------------------------------------------

TWO = cuda("out[i] = x[i] + y[i]; two[i] = x[i];", f"{XY}, float* two")
TWO_CASE = case(
    tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
)


@pytest.mark.parametrize("run", ["never", "auto"])
def test_a_result_that_is_not_there(run: str) -> None:
    result = compared(TWO, ADD_NKI, TWO_CASE, run=run)
    assert (result.verdict, rules(result)) == ("not-faithful", ["MAP112"])


@pytest.mark.parametrize("run", ["never", "auto"])
@pytest.mark.parametrize("shape", ["(n + 1,)", "(n, 1)"])
def test_a_result_of_another_shape(shape: str, run: str) -> None:
    flat = ".reshape((n,))" if shape == "(n, 1)" else ""
    right = ADD_NKI.replace("(n,), dtype", f"{shape}, dtype")
    result = compared(ADD, right.replace("dst=out[start", f"dst=out{flat}[start"), run=run)
    assert (result.verdict, rules(result)) == ("not-faithful", ["MAP113"])


def test_reading_and_running_say_the_same() -> None:
    """Where reading alone is sure, a run never says the opposite."""
    for right in (ADD_NKI, combined("subtract"), combined("multiply"), combined("maximum")):
        never, auto = compared(ADD, right), compared(ADD, right, run="auto")
        assert never.verdict == auto.verdict
        assert auto.confidence >= never.confidence


# -- constructs and their findings ------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "kind", "rule"),
    [
        (combined("subtract"), "elementwise", "MAP103"),
        (ADD_NKI.replace("range(0, n, 512)", "range(0, n, 1024)"), "mask", "MAP101"),
        (ADD_NKI.replace("src=y[start : start", "src=y[0 : 0"), "stage-in", "MAP105"),
        (ADD_NKI.replace("dst=out[start : start", "dst=out[0 : 0"), "output-store", "MAP109"),
    ],
)
def test_a_lost_construct_names_a_finding(right: str, kind: str, rule: str) -> None:
    result = compared(ADD, right)
    by_id = {finding.id: finding.rule for finding in result.findings}
    lost = [c for c in result.constructs if c.verdict in {"mismapped", "missing"}]
    assert kind in {c.kind for c in lost}
    for construct in lost:
        named = {by_id[identity] for identity in construct.findings}
        assert any(construct.kind in BY_ID[name].about for name in named), construct
    assert rule in set(by_id.values())


def test_nothing_is_written_and_everything_says_why() -> None:
    left = cuda("x[i] += y[i];", "float* x, const float* y, int n")
    result = compared(left, nki("return x"), case(tensor("x", role="inout"), tensor("y")))
    finding, unread = result.findings
    assert (unread.rule, unread.effect) == ("API405", "style")
    assert finding.rule == "MAP101"
    lost = [c for c in result.constructs if c.verdict in {"mismapped", "missing"}]
    assert lost
    assert all(construct.findings == (finding.id,) for construct in lost)


def test_a_faithful_pair_has_nothing_lost() -> None:
    result = compared(ADD, ADD_NKI)
    assert result.findings == ()
    assert {c.verdict for c in result.constructs} <= {"matched", "transformed", "not-needed"}
    assert (result.score.fidelity, result.correspondence) == (100.0, 1.0)


def test_equal_inputs_give_equal_bytes() -> None:
    for run in ("never", "auto"):
        left = compared(ADD, combined("subtract"), run=run)
        assert left.to_json() == compared(ADD, combined("subtract"), run=run).to_json()


def test_a_finding_that_the_file_sets_aside_stays_visible() -> None:
    left = cuda("x[i] += y[i];", "float* x, const float* y, int n")
    kernel = nki("return x").replace(
        "def k(x, y):", "def k(x, y):  # migrate: ignore[API405] the caller's signature"
    )
    result = compared(left, kernel, case(tensor("x", role="inout"), tensor("y")))
    (unread,) = (f for f in result.findings if f.rule == "API405")
    assert unread.suppressed == "the caller's signature"
    assert unread.points == 0
