"""Compare a CUDA kernel with the NKI kernel that claims to be its migration.

    import migrate

    result = migrate.compare("kernel.cu", "kernel.py", case="case.toml")
    print(result.verdict, result.confidence)

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate.api import compare, compare_text, lifted, lint, lint_text, run, run_cuda, run_nki
    from migrate.results import Comparison, Finding, IrDocument, LintDocument
    from migrate.source import SourceError, Span

    __version__: str

__all__ = [
    "Comparison",
    "Finding",
    "IrDocument",
    "LintDocument",
    "SourceError",
    "Span",
    "__version__",
    "compare",
    "compare_text",
    "lifted",
    "lint",
    "lint_text",
    "run",
    "run_cuda",
    "run_nki",
]

_HOMES = {
    "Comparison": "migrate.results",
    "Finding": "migrate.results",
    "IrDocument": "migrate.results",
    "LintDocument": "migrate.results",
    "SourceError": "migrate.source",
    "Span": "migrate.source",
    "compare": "migrate.api",
    "compare_text": "migrate.api",
    "lifted": "migrate.api",
    "lint": "migrate.api",
    "lint_text": "migrate.api",
    "run": "migrate.api",
    "run_cuda": "migrate.api",
    "run_nki": "migrate.api",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        return import_module("migrate.version").VERSION
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'migrate' has no attribute {name!r}")
    return getattr(import_module(home), name)
