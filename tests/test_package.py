"""The wheel is whole: outside the checkout it gives what the checkout gives."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import migrate

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A folder with nothing but what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, capture_output=True)
    return target


def run(arguments, where, path):
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONSAFEPATH": "1"}
    # -S would hide the dependencies too; the path comes before an editable install.
    command = [sys.executable, "-c", "import sys; from migrate.cli import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, *arguments], cwd=where, env=environment, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_wheel_gives_what_the_checkout_gives(unpacked, tmp_path):
    shutil.copytree(ROOT / "samples" / "vector_add", tmp_path / "pair")
    arguments = ["diff", "pair/case.toml", "--format", "json", "--run", "never"]
    code, out, err = run(arguments, tmp_path, unpacked)
    assert (code, err) == (0, b"")
    code, mine, _ = run(arguments, tmp_path, ROOT)
    assert code == 0
    assert json.loads(out) == json.loads(mine)


def test_the_package_runs_from_the_wheel(unpacked, tmp_path):
    command = [
        sys.executable,
        "-c",
        "import migrate, migrate.facts as f; print(migrate.__file__, f.root())",
    ]
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, check=True, text=True
    )
    module, facts = done.stdout.split()
    assert Path(module).is_relative_to(unpacked)
    assert Path(facts).is_relative_to(unpacked)
    assert Path(module) != Path(migrate.__file__)
