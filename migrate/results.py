"""What the tool says: the result types, their JSON and the schema of that JSON.

Data flows one way into these: constructs come from the alignment, findings from the
rules, runs from the verification, the score from all three.  Every reader (text report,
review, batch, graders) works on `Comparison` alone.

JSON has no infinities and no NaN.  A magnitude that is not finite is `null`; a *value*
that a kernel produced keeps its name (`Value`), because which of them it was is the news.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from migrate.source import Span, quoted
from migrate.version import VERSION

SCHEMA_VERSION: Final = "1"

Side = Literal["cuda", "nki"]
Verdict = Literal["faithful", "faithful-with-findings", "not-faithful", "undetermined"]
ConstructVerdict = Literal[
    "matched", "transformed", "mismapped", "missing", "extra", "not-needed", "unknown"
]
ConstructKind = Literal[
    "contraction",
    "reduction",
    "scan",
    "gather",
    "scatter",
    "transpose",
    "window",
    "random",
    "output-store",
    "elementwise",
    "tile-axis",
    "stage-in",
    "stage-out",
    "mask",
    "initial-value",
    "cast",
    "special-function",
    "barrier",
    "double-buffer",
    "vector-access",
    "atomic",
    "constant",
    "opaque",
]
Severity = Literal["error", "warning", "note"]
Effect = Literal["rejects", "wrong", "inaccurate", "slow", "style"]
Family = Literal["mapping", "hardware", "numerics", "performance", "api", "cheat", "cuda"]
Status = Literal["pass", "investigate", "fail", "not-run"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""From the gravest to the mildest."""

Value = int | float | Literal["uninitialised", "nan", "inf", "-inf"]
"""One element that a kernel produced."""

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Points = Annotated[float, Meta(ge=0.0, le=100.0)]
Count = Annotated[int, Meta(ge=0)]


def value(number: float) -> Value:
    """`number` (int or float) as it can stand in a result: what is not finite by its name."""
    if isinstance(number, int) or math.isfinite(number):
        return number
    if math.isnan(number):
        return "nan"
    return "inf" if number > 0 else "-inf"


class _Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every result: an unknown field is an error, so that typing mistakes show."""


class Tool(_Result, frozen=True, kw_only=True):
    """What produced a result.  `facts` is the digest of the tables it was judged by."""

    name: str = "migrate"
    version: str = VERSION
    facts: str


class VersionReason(_Result, frozen=True, kw_only=True):
    """A place that says which versions of NKI a kernel is for."""

    message: str
    span: Span


class NkiVersions(_Result, frozen=True, kw_only=True):
    """The versions of NKI that a kernel can run on, as its text says.

    `lowest` and `highest` are `None` where no version fits or none can be told; `words` say
    it all (`0.2.0 or later`).  `lower` and `upper` are what excludes the version below the
    lowest and above the highest.
    """

    words: str
    lowest: str | None = None
    highest: str | None = None
    lower: tuple[VersionReason, ...] = ()
    upper: tuple[VersionReason, ...] = ()


class Subject(_Result, frozen=True, kw_only=True):
    """A kernel under review: the file as the user named it, and the SHA-256 of its text."""

    file: str
    kernel: str
    digest: str
    target: str | None = None
    """The NKI side's target (`trn1`, `trn2`, `trn3`)."""
    version: str | None = None
    """The NKI version that the kernel is said to be for."""
    versions: NkiVersions | None = None
    """The versions that the NKI kernel can run on."""


class Score(_Result, frozen=True, kw_only=True):
    """Points from 0 to 100; a part without evidence is `None` and drops out."""

    version: str = "fidelity/1"
    fidelity: Points | None = None
    mapping: Points | None = None
    hardware: Points | None = None
    numerics: Points | None = None
    performance: Points | None = None


class Coverage(_Result, frozen=True, kw_only=True):
    """The share of each side's statements that was understood."""

    cuda: Share
    nki: Share


class ConstructSide(_Result, frozen=True, kw_only=True):
    """Where a construct stands on one side, and what it is there in a few words."""

    summary: str
    span: Span


class Construct(_Result, frozen=True, kw_only=True):
    """A construct of either kernel with its partner and the verdict on the pairing.

    `mapping` names the entry of `mappings/cuda_to_nki` that judged it, `findings` the
    findings that rest on it.
    """

    id: str
    kind: ConstructKind
    verdict: ConstructVerdict
    mapping: str | None = None
    reason: str = ""
    cuda: tuple[ConstructSide, ...] = ()
    nki: tuple[ConstructSide, ...] = ()
    findings: tuple[str, ...] = ()


class Related(_Result, frozen=True, kw_only=True):
    """Another place that a finding is about."""

    side: Side
    span: Span
    note: str | None = None


class Inputs(_Result, frozen=True, kw_only=True):
    """How the inputs of a run were made: the same family and seed give the same arrays."""

    family: str
    seed: Count = 0


class Witness(_Result, frozen=True, kw_only=True):
    """One element on which the two kernels differ: enough to see it happen again.

    `found_by` is `evaluation` for the lifted meanings (no kernel was run) and `run` for
    the kernels themselves.
    """

    found_by: Literal["evaluation", "run"]
    sizes: dict[str, int]
    inputs: Inputs
    output: str
    index: tuple[int, ...]
    cuda: Value
    nki: Value


class Finding(_Result, frozen=True, kw_only=True):
    """One statement about one place.  `points` is what it costs the score (0 or less)."""

    id: str
    rule: str
    family: Family
    severity: Severity
    effect: Effect
    message: str
    side: Side
    span: Span
    related: tuple[Related, ...] = ()
    witness: Witness | None = None
    points: Annotated[float, Meta(le=0.0)] = 0.0
    suppressed: str | None = None
    """The reason given where the finding is suppressed."""


class OutputResult(_Result, frozen=True, kw_only=True):
    """One output of one run: NKI against the reference, and how much was allowed.

    `max_abs` and `allowed` are in the output's own units, `max_ulp` in units in the last
    place of its dtype; `None` where nothing finite can be said.  `ambiguous` counts
    elements whose reference hangs on a comparison within its own error bound.
    """

    name: str
    status: Status
    elements: Count
    mismatched: Count = 0
    first_mismatch: tuple[int, ...] | None = None
    max_abs: float | None = None
    max_ulp: Count | None = None
    allowed: float | None = None
    ambiguous: Count = 0

    def __post_init__(self) -> None:
        for name in ("max_abs", "allowed"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                msgspec.structs.force_setattr(self, name, None)


class Run(_Result, frozen=True, kw_only=True):
    """Both kernels on one set of inputs.  `reason` says why it was not run, or stopped."""

    sizes: dict[str, int]
    inputs: Inputs
    status: Status
    reason: str | None = None
    outputs: tuple[OutputResult, ...] = ()


class Comparison(_Result, frozen=True, kw_only=True):
    """Everything that is said about one pair.

    `confidence` is that of the verdict; `correspondence` says how much the two kernels
    compute the same thing at all.  `deterministic` is false where a bound in seconds
    stopped something, so that another machine may say more.  `reasons` are the sentences
    the verdict rests on, `inferred` what was not given and had to be read from the code.
    """

    schema_version: Literal["1"] = SCHEMA_VERSION
    tool: Tool
    deterministic: bool
    cuda: Subject
    nki: Subject
    verdict: Verdict
    confidence: Share
    correspondence: Share
    score: Score = Score()
    coverage: Coverage
    reasons: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    constructs: tuple[Construct, ...] = ()
    findings: tuple[Finding, ...] = ()
    runs: tuple[Run, ...] = ()

    def to_json(self, *, indent: int = 0) -> bytes:
        """UTF-8 JSON; equal results give equal bytes."""
        return encoded(self, indent=indent)

    @staticmethod
    def from_json(data: bytes | str) -> Comparison:
        """Read `to_json`'s output.

        Raises `msgspec.ValidationError` where it is not one, `msgspec.DecodeError` where
        it is not JSON.
        """
        return msgspec.json.decode(data, type=Comparison)


class Parameter(_Result, frozen=True, kw_only=True):
    """A kernel's parameter.  `shape` holds index expressions; `None` where it is open."""

    name: str
    type: str
    role: Literal["in", "out", "inout", "scalar", "unused", "unknown"]
    shape: tuple[str, ...] | None = None


class AxisInfo(_Result, frozen=True, kw_only=True):
    """An axis of the iteration: `extent` is an index expression."""

    name: str
    kind: Literal[
        "grid", "block", "warp", "lane", "tile", "parallel", "sequential", "partition", "free"
    ]
    extent: str


class LiftedConstruct(_Result, frozen=True, kw_only=True):
    """A construct of one kernel, before any partner is looked for."""

    id: str
    kind: ConstructKind
    summary: str
    span: Span
    attributes: dict[str, str] = {}
    after: tuple[str, ...] = ()
    """The constructs whose results it uses."""


class IrOp(_Result, frozen=True, kw_only=True):
    """An operation of the IR as one line of its text form; `depth` counts the regions it is in."""

    text: str
    depth: Count
    span: Span


class LiftedKernel(_Result, frozen=True, kw_only=True):
    """What one kernel was understood to do.

    `computes` and `work_mapping` say in the vocabulary of the kernel census what the
    kernel computes and how it spreads the work; `ir` lists the operations in order.
    """

    name: str
    span: Span
    coverage: Share
    computes: str
    work_mapping: str
    versions: NkiVersions | None = None
    """Of an NKI kernel: the versions that it can run on."""
    parameters: tuple[Parameter, ...] = ()
    axes: tuple[AxisInfo, ...] = ()
    constructs: tuple[LiftedConstruct, ...] = ()
    ir: tuple[IrOp, ...] = ()
    inferred: tuple[str, ...] = ()
    """What was not given: arguments that an NKI kernel was read with."""


class IrDocument(_Result, frozen=True, kw_only=True):
    """The answer of `migrate ir --json`: every kernel of one file."""

    schema_version: Literal["1"] = SCHEMA_VERSION
    side: Side
    kernels: tuple[LiftedKernel, ...] = ()

    def to_json(self, *, indent: int = 0) -> bytes:
        """UTF-8 JSON; equal documents give equal bytes."""
        return encoded(self, indent=indent)

    @staticmethod
    def from_json(data: bytes | str) -> IrDocument:
        """Read `to_json`'s output; raises as `Comparison.from_json` does."""
        return msgspec.json.decode(data, type=IrDocument)


class LintedKernel(_Result, frozen=True, kw_only=True):
    """What is wrong with one NKI kernel by itself.

    `sizes` are those it was read at, `inferred` says what was not given; `reasons` say what was
    not understood.  `complete` is false where instructions were not seen, so that rules about
    them may have missed something.
    """

    name: str
    span: Span
    target: str
    versions: NkiVersions | None = None
    complete: bool
    instructions: Count = 0
    sizes: dict[str, int] = {}
    inferred: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class LintDocument(_Result, frozen=True, kw_only=True):
    """The answer of `migrate lint --json`: every kernel of one NKI file."""

    schema_version: Literal["1"] = SCHEMA_VERSION
    tool: Tool
    deterministic: bool
    file: str
    digest: str
    kernels: tuple[LintedKernel, ...] = ()

    def to_json(self, *, indent: int = 0) -> bytes:
        """UTF-8 JSON; equal documents give equal bytes."""
        return encoded(self, indent=indent)

    @staticmethod
    def from_json(data: bytes | str) -> LintDocument:
        """Read `to_json`'s output; raises as `Comparison.from_json` does."""
        return msgspec.json.decode(data, type=LintDocument)


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas (2020-12) by file name, as checked in under `mappings/schema`."""
    return {
        "comparison.schema.json": schema_of(
            Comparison, "What migrate says about a pair of kernels"
        ),
        "ir.schema.json": schema_of(IrDocument, "What migrate understood of a file's kernels"),
        "lint.schema.json": schema_of(LintDocument, "What migrate finds in NKI kernels alone"),
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of `Comparison`."""
    return schemas()["comparison.schema.json"]


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """The JSON Schema of a struct."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **_tidy(msgspec.json.schema(kind)),
    }


def _tidy(part: Any) -> Any:
    """The same schema, alike from every version of Python and msgspec.

    They differ in how docstrings are indented and in the order of alternatives.
    """
    from inspect import cleandoc

    match part:
        case {"anyOf": list(alternatives), **rest}:
            return {**_tidy(rest), "anyOf": sorted(map(_tidy, alternatives), key=repr)}
        case dict():
            return {
                key: cleandoc(item)
                if key == "description" and isinstance(item, str)
                else _tidy(item)
                for key, item in part.items()
            }
        case list():
            return [_tidy(item) for item in part]
        case _:
            return part


def encoded(value: object, *, indent: int = 0) -> bytes:
    """A structure as UTF-8 JSON, in which no character acts on a terminal.

    Half a surrogate pair, which UTF-8 has no bytes for, comes as its escape in the text.
    """
    # "deterministic" sorts dictionaries and keeps the fields in the order of their types.
    try:
        data = msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:
        data = msgspec.json.encode(_whole(msgspec.to_builtins(value)), order="deterministic")
    if indent:
        data = msgspec.json.format(data, indent=indent)
    return quoted(data)


def _whole(value: Any) -> Any:
    """Plain data without half surrogate pairs."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole(item) for item in value]
        case _:
            return value
