"""`migrate review`: before and around the application."""

import asyncio
import io
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from migrate.cli import OK, USAGE, main, review
from migrate.cli.common import Subjects
from migrate.cli.review import command, compared, texts
from migrate.source import SourceError
from migrate.tui.app import LoadError, ReviewApp


@pytest.fixture
def sample(checkout):
    return checkout / "samples/vector_add"


@pytest.fixture
def terminal(monkeypatch):
    """The standard streams count as a terminal."""
    monkeypatch.setattr(review, "interactive", lambda: True)


def test_without_a_terminal_it_is_a_sentence(sample, capsys):
    assert main(["review", str(sample / "case.toml")]) == USAGE
    shown = capsys.readouterr()
    assert "needs a terminal" in shown.err
    assert "migrate diff" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("streams", "term", "expected"),
    [
        (("stdin", "stdout", "stderr"), "xterm", True),
        (("stdin", "stdout", "stderr"), "dumb", False),
        (("stdout", "stderr"), "xterm", False),
        (("stdin", "stderr"), "xterm", False),
        (("stdin", "stdout"), "xterm", False),
    ],
)
def test_a_terminal_is_one_on_all_streams_that_can_move_its_cursor(
    streams, term, expected, monkeypatch
):
    class Stream(io.StringIO):
        def __init__(self, terminal):
            super().__init__()
            self.terminal = terminal

        def isatty(self):
            return self.terminal

    monkeypatch.setenv("TERM", term)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Stream(name in streams))
    assert review.interactive() == expected


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kernel.cu"], "the NKI kernel is missing"),
        (["none.cu", "none.py"], "none.cu: no such file"),
        (["none.toml"], "none.toml: no such file"),
        (["empty.toml"], "empty.toml: names no CUDA file"),
        (["a.cu", "b.py", "--theme", "pink"], "invalid choice: 'pink'"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").write_text("[sizes]\nn = [1]\n")
    assert main(["review", *arguments]) == USAGE
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


@pytest.mark.usefixtures("terminal")
def test_the_error_of_the_comparison_is_said_when_the_screen_is_gone(sample, capsys, monkeypatch):
    monkeypatch.setattr(ReviewApp, "run", lambda self: LoadError("migrate: it broke", 3))
    assert main(["review", str(sample / "case.toml")]) == 3
    assert capsys.readouterr().err == "migrate: it broke\n"


@pytest.mark.usefixtures("terminal")
def test_leaving_is_fine(sample, monkeypatch):
    monkeypatch.setattr(ReviewApp, "run", lambda self: None)
    assert main(["review", str(sample / "case.toml"), "--theme", "light"]) == OK


def test_the_texts_are_those_named(sample):
    cuda, nki = sample / "kernel.cu", sample / "kernel.py"
    named = texts(Subjects(f"{cuda}::vector_add", f"{nki}::vector_add", None))
    stated = texts(Subjects(None, None, str(sample / "case.toml")))
    assert [source.text for source in named] == [cuda.read_text(), nki.read_text()]
    assert [source.digest for source in stated] == [source.digest for source in named]


def test_a_case_without_a_file_is_named(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k() {}\n")
    case = tmp_path / "case.toml"
    case.write_text('[cuda]\nfile = "k.cu"\n')
    with pytest.raises(SourceError, match="names no NKI file"):
        texts(Subjects(None, None, str(case)))


def test_arguments_that_look_like_options_are_none():
    line = command(Subjects("-x.cu", "--run", "--case.toml"), "never")
    assert line[line.index("--") :] == ["--", "-x.cu", "--run"]
    assert "--case=--case.toml" in line
    assert line[line.index("--run") + 1] == "never"


async def test_the_comparison_comes_with_its_texts(sample):
    case = str(sample / "case.toml")
    result, sources = await compared(Subjects(None, None, case), "never")
    assert result.verdict == "faithful"
    assert set(sources) == {result.cuda.file, result.nki.file}


async def test_modules_in_the_working_directory_are_not_imported(sample, tmp_path, monkeypatch):
    marker = tmp_path / "imported"
    for name in ("migrate", "msgspec", "json", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    result, _ = await compared(Subjects(None, None, str(sample / "case.toml")), "never")
    assert result.constructs
    assert not marker.exists()


async def test_what_the_comparison_says_instead_of_a_result_is_the_error(tmp_path):
    (tmp_path / "k.cu").write_text("int x;\n")
    (tmp_path / "k.py").write_text("x = 1\n")
    asked = Subjects(str(tmp_path / "k.cu"), str(tmp_path / "k.py"), None)
    with pytest.raises(LoadError) as caught:
        await compared(asked, "never")
    assert caught.value.code == USAGE
    assert caught.value.message.startswith("migrate: ")
    assert "k.cu" in caught.value.message


async def test_cancelling_ends_the_process(sample, monkeypatch):
    started = []
    create = asyncio.create_subprocess_exec

    async def remembered(*line, **options):
        process = await create(sys.executable, "-c", "import time; time.sleep(600)", **options)
        started.append(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remembered)
    case = str(sample / "case.toml")
    task = asyncio.create_task(compared(Subjects(None, None, case), "never"))
    while not started:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started[0].returncode < 0


def test_in_a_terminal_it_opens_and_leaves(checkout, sample):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "migrate", "review", str(sample / "case.toml"), "--run", "never"],
        cwd=checkout,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
    )
    os.close(theirs)
    seen = b""
    asked = False
    with process:
        limit = time.monotonic() + 120
        while process.poll() is None:
            if time.monotonic() > limit:
                process.kill()
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            # The list stands: the comparison has come and is shown.
            if b"output-store" in seen and not asked:
                os.write(ours, b"q")
                asked = True
    os.close(ours)
    assert process.returncode == OK
    assert b"blockIdx" in seen
    assert b"dma_copy" in seen
