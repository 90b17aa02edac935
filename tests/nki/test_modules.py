"""What kernels import from the files of their project: read as text, within bounds."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from migrate.nki.frames import Instruction
from migrate.nki.parse import parse
from migrate.nki.project import Project
from migrate.nki.specialize import Specialization, specialize
from migrate.source import read
from tests.nki.kernels import HEADER, tensor


def project(folder: Path, **files: str) -> Path:
    """Files by name: `__` is a folder below, `INIT` is `__init__`."""
    for name, text in files.items():
        place = folder / (name.replace("__", "/").replace("INIT", "__init__") + ".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text))
    return folder


def kernel(imports: str, body: str) -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return f"{HEADER}{textwrap.dedent(imports)}\n\n@nki.jit\ndef k(x):\n{lines}\n    return x\n"


def specialized(file: Path, roots: tuple[Path, ...] = ()) -> Specialization:
    around = Project.around(file, file.name, roots)
    module = parse(read(file, name=file.name), around)
    return specialize(module, "k", {"x": tensor("x", 4, 4)})


def printed(file: Path, roots: tuple[Path, ...] = ()) -> list[str]:
    found = specialized(file, roots)
    assert [event for event in found.events if event.kind != "print"] == []
    assert found.complete
    return [event.message for event in found.events]


def unknown(file: Path) -> str:
    """Why a kernel is not understood."""
    found = specialized(file)
    assert not found.complete
    return "; ".join(event.message for event in found.events if event.kind != "print")


@pytest.mark.parametrize(
    ("imports", "used"),
    [
        ("from sizes import WIDTH, rows", "WIDTH, rows(3)"),
        ("from sizes import WIDTH as W, rows as r", "W, r(3)"),
        ("import sizes", "sizes.WIDTH, sizes.rows(3)"),
        ("import sizes as s", "s.WIDTH, s.rows(3)"),
        ("from sizes import *", "WIDTH, rows(3)"),
        ("try:\n    from sizes import *\nexcept ImportError:\n    WIDTH = 0", "WIDTH, rows(3)"),
        (
            "import typing as t\nif t.TYPE_CHECKING:\n    import torch\nimport sizes",
            "sizes.WIDTH, 6",
        ),
    ],
)
def test_a_file_beside_the_kernel(tmp_path: Path, imports: str, used: str) -> None:
    project(
        tmp_path,
        sizes="""
            WIDTH = 8

            def rows(n):
                return 2 * n
        """,
        kernel=kernel(imports, f"print({used})"),
    )
    assert printed(tmp_path / "kernel.py") == ["8 6"]


@pytest.mark.parametrize(
    ("imports", "used"),
    [
        ("from .helpers import area", "area(3)"),
        ("from . import helpers", "helpers.area(3)"),
        ("from ..common.numbers import FACTOR", "9 * FACTOR // 5"),
        ("from .. import common", "common.FACTOR + 4"),
        ("from lib.core.helpers import area", "area(3)"),
        ("import lib.core.helpers", "lib.core.helpers.area(3)"),
        ("from lib.common import FACTOR", "FACTOR + 4"),
    ],
)
def test_packages(tmp_path: Path, imports: str, used: str) -> None:
    project(
        tmp_path,
        lib__INIT="",
        lib__common__INIT="from .numbers import *",
        lib__common__numbers="FACTOR = 5",
        lib__core__INIT="",
        lib__core__helpers="def area(n):\n    return n * n",
        lib__core__kernel=kernel(imports, f"print({used})"),
    )
    assert printed(tmp_path / "lib" / "core" / "kernel.py") == ["9"]


def test_modules_that_import_each_other_inside_functions(tmp_path: Path) -> None:
    project(
        tmp_path,
        first="import second\n\ndef one():\n    return second.two() - 1",
        second="""
            from first import one

            def two():
                return 2

            def three():
                return one() + 2
        """,
        kernel=kernel("from second import three", "print(three())"),
    )
    assert printed(tmp_path / "kernel.py") == ["3"]


def test_names_that_wait_for_each_other_are_unknown(tmp_path: Path) -> None:
    project(
        tmp_path,
        first="from second import B\nA = B + 1",
        second="from first import A\nB = A + 1",
        kernel=kernel("from first import A", "print(A)"),
    )
    assert "import each other" in unknown(tmp_path / "kernel.py")


def test_classes_of_other_files(tmp_path: Path) -> None:
    project(
        tmp_path,
        plans="""
            from dataclasses import dataclass
            import nki.language as nl

            @dataclass
            class Plan:
                rows: int
                dtype: object = nl.float32

                def tile(self, cols):
                    return nl.ndarray((self.rows, cols), dtype=self.dtype, buffer=nl.sbuf)
        """,
        kernel=kernel(
            "from plans import Plan",
            """
            class Wide(Plan):
                def tile(self, cols):
                    return super().tile(2 * cols)

            t = Wide(4).tile(2)
            print(t.shape)
            nisa.dma_copy(dst=t, src=x)
            """,
        ),
    )
    assert printed(tmp_path / "kernel.py") == ["(4, 4)"]


def test_places_in_other_files_name_those_files(tmp_path: Path) -> None:
    project(
        tmp_path,
        kernel=kernel("from helpers import load", "load(x)"),
        helpers="""
            import nki.isa as nisa
            import nki.language as nl

            def load(x):
                t = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=t, src=x)
                return t
        """,
    )
    file = tmp_path / "kernel.py"
    found: list[Instruction] = []
    module = parse(read(file, name="kernel.py"), Project.around(file, "kernel.py"))
    specialize(module, "k", {"x": tensor("x", 4, 4)}, on_instruction=found.append)
    (copy,) = found
    assert (copy.span.file, copy.span.start_line) == ("helpers.py", 7)
    assert [frame.file for frame in copy.span.via] == ["kernel.py"]


def test_what_fails_in_a_module_fails_where_it_is_used(tmp_path: Path) -> None:
    project(
        tmp_path,
        helpers="import torch\nDEVICE = torch.device('x')\nLIMIT = 3\nBAD = 1 // 0",
        kernel=kernel("from helpers import LIMIT, DEVICE", "print(LIMIT)"),
        other=kernel("from helpers import BAD", "print(BAD)"),
    )
    assert printed(tmp_path / "kernel.py") == ["3"]
    assert "BAD" in unknown(tmp_path / "other.py")


def test_a_module_is_read_again_when_it_changes(tmp_path: Path) -> None:
    project(tmp_path, sizes="N = 1", kernel=kernel("from sizes import N", "print(N)"))
    assert printed(tmp_path / "kernel.py") == ["1"]
    project(tmp_path, sizes="N = 2")
    assert printed(tmp_path / "kernel.py") == ["2"]


@pytest.mark.parametrize("text", ["def broken(:", "\0", "N = " + "(" * 5000])
def test_files_that_are_no_python_are_told(tmp_path: Path, text: str) -> None:
    project(tmp_path, kernel=kernel("from sizes import N", "print(N)"))
    (tmp_path / "sizes.py").write_text(text)
    assert "sizes" in unknown(tmp_path / "kernel.py")


def test_nothing_outside_the_project_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    project(tmp_path, secret="N = 7")
    project(
        inside,
        pkg__INIT="",
        pkg__kernel=kernel("from ...secret import N", "print(N)"),
        pkg__other=kernel("from .link import N", "print(N)"),
    )
    (inside / "pyproject.toml").write_text("")
    (inside / "pkg" / "link.py").symlink_to(tmp_path / "secret.py")
    for name in ("kernel.py", "other.py"):
        assert "outside the reviewed file" in unknown(inside / "pkg" / name)


def test_named_folders_may_be_read(tmp_path: Path) -> None:
    elsewhere = project(tmp_path / "elsewhere", sizes="N = 7")
    here = project(tmp_path / "here", kernel=kernel("from sizes import N", "print(N)"))
    (here / "pyproject.toml").write_text("")
    assert "outside the reviewed file" in unknown(here / "kernel.py")
    assert printed(here / "kernel.py", (elsewhere,)) == ["7"]


def test_without_a_project_nothing_is_read(tmp_path: Path) -> None:
    project(tmp_path, sizes="N = 1", kernel=kernel("from sizes import N", "print(N)"))
    module = parse(read(tmp_path / "kernel.py"))
    found = specialize(module, "k", {"x": tensor("x", 4, 4)})
    assert not found.complete


def test_endless_and_chained_modules_end(tmp_path: Path) -> None:
    project(
        tmp_path,
        slow="n = 0\nwhile True:\n    n += 1\n",
        kernel=kernel("from slow import n", "print(n)"),
        chained=kernel("from m0 import N", "print(N)"),
        **{f"m{k}": f"from m{k + 1} import *" for k in range(60)},
        m60="N = 1",
    )
    assert "very long" in unknown(tmp_path / "kernel.py")
    assert "may come from" in unknown(tmp_path / "chained.py")
