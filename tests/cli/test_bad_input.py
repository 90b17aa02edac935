"""What cannot be read: one sentence with its place and a code, in bounded time and memory.

What is small is read in this process; what could take it down, in a process with limits
(`tests.cli.limited`).
"""

import numpy as np
import pytest

from migrate.cli import OK, SAYS_NO, UNDETERMINED, USAGE, main
from migrate.cli.arrays import npz
from tests import pairs
from tests.cli import limited

CUDA, NKI = pairs.ADD, pairs.ADD_NKI
CASE = pairs.case(n=(3, 700)).replace("[cuda]\n", '[cuda]\nfile = "kernel.cu"\n')
CASE += '[nki]\nfile = "kernel.py"\n'
FILES = {"cuda": "kernel.cu", "nki": "kernel.py"}
X = np.arange(3, dtype=np.float32)
INPUTS = {"cuda": {"x": X, "y": X, "out": X}, "nki": {"x": X, "y": X}}
LAUNCH = ["--arg", "n=3", "--grid", "1", "--block", "128"]


def commands(side):
    """A command of each verb that reads both files or the one of a side."""
    file = FILES[side]
    launch = LAUNCH if side == "cuda" else []
    return {
        "diff": ["diff", "kernel.cu", "kernel.py", "--run", "never"],
        "diff-case": ["diff", "case.toml"],
        "score": ["score", "kernel.cu", "kernel.py", "--case", "stated.toml", "--run", "never"],
        "ir": ["ir", file],
        "run": ["run", file, "--inputs", f"{side}.npz", *launch],
    }


VERBS = tuple(commands("cuda"))


def put(folder):
    """A pair that is well, with its cases and inputs."""
    (folder / "kernel.cu").write_text(CUDA)
    (folder / "kernel.py").write_text(NKI)
    (folder / "case.toml").write_text(CASE)
    (folder / "stated.toml").write_text(pairs.case(n=(3, 700)))
    for side, arrays in INPUTS.items():
        (folder / f"{side}.npz").write_bytes(npz(arrays))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path)
    return tmp_path


@pytest.fixture
def said(capfd):
    """Runs a command: its code, and the one sentence that it says."""

    def ask(arguments):
        code = main(arguments)
        shown = capfd.readouterr()
        assert shown.out == ""
        assert sentence(shown.err)
        return code, shown.err

    return ask


def sentence(err):
    """Whether this is one sentence of ours, and no crash."""
    internal = "Traceback" in err or "internal error" in err
    return err.startswith("migrate") and err.count("\n") == 1 and len(err) < 1000 and not internal


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("side", FILES)
@pytest.mark.parametrize("verb", VERBS)
def test_the_pair_itself_is_well(side, verb, capfd):
    assert main(commands(side)[verb]) == OK
    assert capfd.readouterr().err == ""


# -- files that are no kernels ----------------------------------------------------------

PROSE = b"Dear reader,\n\nthis is no program at all.\n"
ANY = {
    "empty": (b"", ": is empty"),
    "blank": (b" \n\t\n", ": is empty"),
    "binary": (b"\x7fELF\x02\x01\0\0", ": is binary"),
    "utf-16": (CUDA.encode("utf-16"), ": is binary"),
}
NO_KERNEL = {
    "cuda": {
        "prose": (PROSE, ":1:1: has no CUDA kernel"),
        "python": (NKI.encode(), "has no CUDA kernel"),
        "no kernel": (b"int main() { return 0; }\n", ": has no CUDA kernel"),
        "a declaration": (b"__global__ void k(float* x);\n", ": has no CUDA kernel"),
        "an open brace": (CUDA.replace(") {", ") {{{(", 1).encode(), "has no CUDA kernel"),
        "no name": (b"__global__ void (float* x) { x[0] = 1; }\n", "has no CUDA kernel"),
    },
    "nki": {
        "prose": (PROSE, ":1:6: is not Python"),
        "c": (CUDA.encode(), ":1:12: is not Python"),
        "latin-1": (b"# one\n# \xe9t\xe9\n", ":2:3: is not UTF-8 text"),
        "no kernel": (b"def f(x):\n    return x + 1\n", ": has no NKI kernel"),
        "a syntax error": (NKI.replace("return out", "retrun out").encode(), ":18:12: is not Py"),
        "an open bracket": (NKI.replace("(x, y)", "(x, y", 1).encode(), ":7:6: is not Python"),
        "mixed indentation": (NKI.replace("    n =", "\tn =").encode(), ":9:"),
        "an integer of many digits": (
            f"{NKI}N = {'9' * 10_000}\n".encode(),
            ": is not Python: an integer has too many digits",
        ),
    },
}
UNREADABLE = [
    pytest.param(side, content, message, id=f"{side} {name}")
    for side in FILES
    for name, (content, message) in {**ANY, **NO_KERNEL[side]}.items()
]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("side", "content", "message"), UNREADABLE)
def test_a_file_that_is_no_kernel(side, content, message, verb, folder, said):
    (folder / FILES[side]).write_bytes(content)
    code, err = said(commands(side)[verb])
    assert code == USAGE
    assert f"{FILES[side]}:" in err
    assert message in err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("side", FILES)
@pytest.mark.parametrize("there", ["nothing", "a directory", "a link to itself"])
def test_what_is_no_file(side, verb, there, folder, said):
    path = folder / FILES[side]
    path.unlink()
    message = "no such file"
    if there == "a directory":
        path.mkdir()
        message = "is a directory, not a file"
    elif there == "a link to itself":
        path.symlink_to(path)
        message = "not a path that can be used" if verb == "diff-case" else "cannot be read"
    code, err = said(commands(side)[verb])
    assert code == USAGE
    assert FILES[side] in err
    assert message in err
    if verb == "diff-case":
        assert err.startswith("migrate: case.toml:")


# -- which kernel -----------------------------------------------------------------------


def two(text):
    """The same file with its kernel twice, as k and as other."""
    at = text.index("__global__" if "__global__" in text else "@nki.jit")
    return text + "\n\n" + text[at:].replace("k(", "other(", 1)


@pytest.mark.parametrize("side", FILES)
@pytest.mark.parametrize("verb", ["diff", "score", "run"])
def test_several_kernels_leave_a_choice(side, verb, folder, said):
    file = folder / FILES[side]
    file.write_text(two(file.read_text()))
    code, err = said(commands(side)[verb])
    assert code == USAGE
    assert f"{FILES[side]}: has 2 kernels (k, other); choose one with {FILES[side]}::NAME" in err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("side", FILES)
@pytest.mark.parametrize("verb", ["diff", "score", "ir", "run"])
@pytest.mark.parametrize("name", ["kk", "\x1b[2J", "q" * 100_000])
def test_a_kernel_that_is_not_there(side, verb, name, said):
    file = FILES[side]
    asked = [f"{file}::{name}" if word == file else word for word in commands(side)[verb]]
    code, err = said(asked)
    assert code == USAGE
    assert f"migrate: {file}: has no kernel called" in err
    assert "k" in err.partition("(")[2]
    assert "\x1b" not in err


# -- what cannot be understood within a kernel ------------------------------------------

WITHIN = {
    "cuda": {
        "a syntax error": ("out[i] = x[i] + y[i]", "kernel.cu:4:5: a syntax error: `;` is missing"),
        "an unknown function": ("out[i] = nonsense(x[i]) + y[i];", "kernel.cu:4:14:"),
        "recursion": ("out[i] = f(x[i]) + y[i];", "kernel.cu:1:38: f calls itself"),
    },
    "nki": {
        "an unknown name": ("nonsense(a)", "kernel.py:16:9: the name nonsense is not defined"),
        "recursion": ("f = lambda n: f(n)\nf(0)", "kernel.py:16:23: calls are nested too deeply"),
        "division by zero": ("a = 1 // 0", "kernel.py:16:13: integer division"),
        "a float without bounds": ("a = 10.0 ** 400", "kernel.py:16:13: a float is too large"),
    },
}
IN_KERNEL = [
    pytest.param(side, body, message, id=f"{side} {name}")
    for side in FILES
    for name, (body, message) in WITHIN[side].items()
]


@pytest.mark.parametrize(("side", "body", "message"), IN_KERNEL)
def test_what_is_wrong_within_a_kernel(side, body, message, folder, said, capfd):
    text = pairs.cuda(body) if side == "cuda" else pairs.tiles(body)
    if "f(x" in body:
        text = "__device__ float f(float x) { return f(x); } " + text
    (folder / FILES[side]).write_text(text)
    code, err = said(commands(side)["run"])
    assert code == USAGE
    assert message in err
    # A comparison goes on with what it understood where the case says what is which.
    for verb in ("diff-case", "score"):
        assert main(commands(side)[verb]) in (SAYS_NO, UNDETERMINED)
        shown = capfd.readouterr()
        assert shown.err == ""
        assert "internal" not in shown.out
    code, err = said(commands(side)["diff"])
    assert code == USAGE
    assert "in a case" in err


# -- cases ------------------------------------------------------------------------------


def changed(old, new):
    """The case with something replaced; the line that it is on."""
    text = CASE.replace(old, new, 1)
    assert text != CASE
    return text, CASE[: CASE.index(old)].count("\n") + 1


DEEP_SUM = '"' + "(" * 9000 + "n" + ")" * 9000 + '"'
QUOTED_KEY = '"a" . ' * 9000 + "a = 1\n[sizes]"
CASES = {
    "no TOML": ("[cuda]", "[cuda", "is not TOML"),
    "an unknown key": ('cuda = "x"', 'kuda = "x"', "unknown key 'kuda'; did you mean 'cuda'?"),
    "an unknown table": ("[sizes]", "[size]\nn = 3\n[sizes]", "unknown key 'size'"),
    "a size that is text": ("n = [3, 700]", 'n = "3"', "must be an integer"),
    "a negative size": ("n = [3, 700]", "n = -3", "-3, not between 0 and 2^40"),
    "a size beyond all": ("n = [3, 700]", "n = 9999999999999999", "not between 0 and 2^40"),
    "no size": ("n = [3, 700]", "n = []", "size 'n' has no value"),
    "an unknown size": ('"ceil_div(n, 128)"', '"m // 128"', "'grid'"),
    "a quotient by zero": ('"ceil_div(n, 128)"', '"n // 0"', "'grid'"),
    "half an expression": ('"ceil_div(n, 128)"', '"n //"', "'grid'"),
    "code as an expression": ('"ceil_div(n, 128)"', "\"__import__('os')\"", "'grid'"),
    "a deep expression": ('"ceil_div(n, 128)"', DEEP_SUM, "'grid'"),
    "a negative grid": ('"ceil_div(n, 128)"', '"1 - n"', "less than 0"),
    "a block that is text": ("[128]", '"128"', "'block'"),
    "a block too large": ("[128]", "[2048]", "a block of 2,048 threads"),
    "a grid too large": ('"ceil_div(n, 128)"', '"n * 1000000000"', "a grid of"),
    "a path outside": ('"kernel.cu"', '"../kernel.cu"', "leaves the folder of the case"),
    "an absolute path": ('"kernel.cu"', '"/kernel.cu"', "leaves the folder of the case"),
    "a link outside": ('"kernel.cu"', '"link.cu"', "leaves the folder of the case"),
    "a NUL in a path": ('"kernel.cu"', '"a\\u0000.cu"', "is not a path that can be used"),
    "a missing file": ('"kernel.cu"', '"none.cu"', "no such file in the folder of the case"),
    "a dtype misspelt": ('"float32"', '"flaot32"', "did you mean 'float32'?"),
    "a fill misspelt": ('nki = "x"', 'nki = "x"\nfill = "norml"', "unknown fill 'norml'"),
    "a pickle": ('nki = "x"', 'nki = "x"\nfill = "pickle.npy"', "Python objects (pickle)"),
    "no array": ('nki = "x"', 'nki = "x"\nfill = "text.npy"', "is not an .npy file"),
    "a header that lies": ('nki = "x"', 'nki = "x"\nfill = "huge.npy"', "'huge.npy' "),
    "an unknown target": ('"kernel.py"', '"kernel.py"\ntarget = "trn9"', "'target'"),
    "a number that is none": ('value = "n"', "value = inf", "inf is no int32"),
    "a name twice": ('name = "y"', 'name = "x"', "the name 'x' is used twice"),
    "sequences in a name": ('name = "x"', 'name = "\\u001b[2J"\nshap = 1', "unknown key 'shap'"),
    "deep nesting": ("[sizes]", f"z = {'[' * 5000}{']' * 5000}\n[sizes]", "nested too deeply"),
    "a deeper table": ("[sizes]", f"[{'a.' * 32_000}a]\n[sizes]", "a key of more than 64"),
    "a deep key": ("[sizes]", f"[sizes]\n{'a.' * 32_000}a = 1", "a key of more than 64 names"),
    "a deep table": ("[sizes]", "[a.b.c.d]\n[sizes]", "unknown key 'a'"),
    "a quoted key": ("[sizes]", QUOTED_KEY, "a key of more than 64 names"),
    "many digits": ("n = [3, 700]", f"n = {'9' * 5000}", "too many digits"),
    "many runs": ("n = [3, 700]", f"n = [{'1,' * 2000}]", "more than 1000 runs"),
    "too long": ("[sizes]", f"# {'x' * 70_000}\n[sizes]", "is larger than 64 KiB"),
    "an argument of nobody": ('cuda = "x"', 'cuda = "xx"', "k has no parameter xx"),
}
WITHOUT_PLACE = {"deep nesting", "many digits", "too long"}


def arrays(folder):
    """Files that cases name and that must not be loaded."""
    (folder / "link.cu").symlink_to("/dev/null")
    (folder / "text.npy").write_text("nonsense")
    np.save(folder / "pickle.npy", np.array([{"a": 1}], object), allow_pickle=True)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }"
    header = header.ljust(117) + b"\n"
    (folder / "huge.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    )


@pytest.mark.parametrize("verb", ["diff", "score", "ir", "review"])
@pytest.mark.parametrize("name", CASES)
def test_a_case_that_is_wrong(name, verb, folder, said, monkeypatch):
    old, new, message = CASES[name]
    if verb == "ir" and name == "an argument of nobody":
        pytest.skip("ir shows why a kernel could not be read in its place")
    text, line = changed(old, new)
    arrays(folder)
    (folder / "case.toml").write_text(text)
    asked = {
        "diff": ["diff", "case.toml"],
        "score": ["score", "kernel.cu", "kernel.py", "--case", "case.toml", "--json"],
        "ir": ["ir", "kernel.py", "--case", "case.toml"],
        "review": ["review", "case.toml"],
    }[verb]
    code, err = said(asked)
    assert code == USAGE
    if verb == "review":
        assert "needs a terminal" in err
        return
    assert message in err
    if name == "an argument of nobody":
        assert "kernel.cu:1:" in err
    elif name in WITHOUT_PLACE:
        assert err.startswith("migrate: case.toml: ")
    else:
        place = err.removeprefix("migrate: case.toml:").split(":")[0]
        assert line <= int(place) <= line + new.count("\n")


def test_a_case_that_is_no_file(folder, said):
    (folder / "folder.toml").mkdir()
    (folder / "binary.toml").write_bytes(b"\0\1")
    for name, message in {
        "none.toml": "no such file",
        "folder.toml": "is a directory",
        "binary.toml": "is binary",
    }.items():
        for asked in (["diff", name], ["score", name], ["ir", "kernel.cu", "--case", name]):
            assert said(asked) == (USAGE, f"migrate: {name}: {message}{said_more(message)}\n")


def said_more(message):
    """How the sentences of `migrate.source` go on."""
    return {
        "no such file": "",
        "is a directory": ", not a file",
        "is binary": " (it has a NUL byte), not source text",
    }[message]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [
        ["review", "kernel.cu", "kernel.py"],
        ["review", "none.cu", "none.py"],
        ["review", "case.toml", "--run", "never"],
        ["review", "none.toml"],
    ],
)
def test_a_review_needs_a_terminal_before_anything(arguments, said):
    code, err = said(arguments)
    assert code == USAGE
    assert "needs a terminal" in err


@pytest.mark.parametrize("given", ["MAP999", "../../etc/passwd", "\x1b[2J", "q" * 100_000, ""])
def test_a_page_that_is_not_there(given, said):
    code, err = said(["explain", given])
    assert code == SAYS_NO
    assert "nothing is called" in err
    assert "\x1b" not in err


# -- what could take the tool down ------------------------------------------------------


def within(body):
    """An NKI kernel that begins with some statements."""
    return pairs.nki(f"{body}\nreturn x")


DEEP = 100_000
# The text, and what `run` says of it; None where it is a kernel like others.
HEAVY_NKI = {
    "20 MB": ("#" * 20_000_000, "larger than 4 MiB"),
    "a long comment": (f"{NKI}# {'x' * 3_900_000}", None),
    "a long string": (f"{NKI}s = '{'x' * 3_900_000}'\n", None),
    "a long list": (f"{NKI}s = [{'1,' * 1_940_000}]\n", "more than 400,000 words"),
    "parentheses": (f"{NKI}s = {'(' * DEEP}{')' * DEEP}\n", "too many nested parentheses"),
    "minuses": (f"{NKI}s = {'-' * DEEP}1\n", "nested too deeply"),
    "sums": (f"{NKI}s = {'1+' * DEEP}1\n", "nested too deeply"),
    "calls": (f"{NKI}s = f{'()' * DEEP}\n", "nested too deeply"),
    "else ifs": (f"{NKI}if 0: pass\n" + "elif 0: pass\n" * 20_000, "nested too deeply"),
    "a loop without end": (within("while True:\n    pass"), "kernel.py:9:9: stopped"),
    "a long range": (within("for i in range(10**12):\n    pass"), "stopped after"),
    "a long count": (within("n = 0\nwhile n < 10**12:\n    n += 1"), "stopped after"),
    "a long affine range": (within("for i in nl.affine_range(10**12): pass"), "stopped after"),
    "recursion": (within("def f(n):\n    return f(n + 1)\nf(0)"), "nested too deeply"),
    "a tree of calls": (within("f = lambda n: f(n - 1) + f(n - 2)\nf(9)"), "nested too deeply"),
    "a list doubled": (within("a = [0]\nfor i in range(60):\n    a = a + a"), "100,000 items"),
    "a list in itself": (within("a = []\na.append(a)\nprint(a)\nassert not a, f'{a}'"), "a list"),
    "a tree of lists": (
        within("a, b = [], []\nfor i in range(60):\n    a, b = [a, a], [b, b]\nassert a != b"),
        "comparing large nested containers",
    ),
    "a large key": (
        within("a = ()\nfor i in range(60):\n    a = (a, a)\nd = {a: 1}"),
        "a key of large nested containers",
    ),
    "a range as a list": (within("a = list(range(10**12))"), "100,000 items"),
    "a string doubled": (within("a = 'a'\nfor i in range(60):\n    a = a + a"), "100,000 items"),
    "a string repeated": (within("a = 'a' * 10**12"), "100,000 items"),
    "a wide format": (within("a = f'{1:>9999999999}'"), "a width over 999"),
    "a power": (within("a = 10**10**9"), "more than 64 bits"),
    "a shift": (within("a = 1 << 10**10"), "shift by 10000000000"),
    "a square again and again": (
        within("a = 7\nfor i in range(60):\n    a = a * a"),
        "more than 64 bits",
    ),
    "a large tensor": (
        within("t = nl.ndarray((2**20, 2**20), dtype=x.dtype, buffer=nl.shared_hbm)\nreturn t"),
        "stopped after 2,147,483,648 bytes",
    ),
    "many tensors": (
        within(
            "for i in range(10**7):\n    t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)"
        ),
        "stopped after",
    ),
}


def cuda(body, before=""):
    """A CUDA kernel that begins with some statements."""
    return f"{before}\n{pairs.cuda('out[i] = x[i] + y[i];').replace('{', '{' + body, 1)}"


HEAVY_CUDA = {
    "20 MB": ("/" * 20_000_000, "larger than 4 MiB"),
    "a long comment": (f"{CUDA}// {'x' * 3_900_000}", None),
    "a long line": (cuda("int q = 0;" + "q = q + 1;" * 380_000), "more than 400,000 words"),
    "parentheses": (cuda(f"int q = {'(' * DEEP}1{')' * DEEP};"), "nested deeper than"),
    "brackets": (cuda(f"int q = x{'[' * DEEP}0{']' * DEEP};"), "kernel.cu:2:"),
    "braces": (cuda("{" * DEEP), "has no CUDA kernel"),
    "minuses": (cuda(f"int q = {'- ' * DEEP}1;"), "nested deeper than"),
    "else ifs": (cuda("if (0) ;" + "else if (0) ;" * 20_000), "nested deeper than"),
    "template brackets": (cuda(f"A{'<A' * 20_000}{'>' * 20_000} q;"), "is used as a value"),
    "a macro bomb": (
        cuda(
            "int q = A0;",
            "".join(f"#define A{i} A{i + 1} A{i + 1}\n" for i in range(40)) + "#define A40 + 1\n",
        ),
        "the macros expand to more than 400,000 words",
    ),
    "a macro's arguments": (
        cuda(f"int q = {'F(' * 30}1{')' * 30};", "#define F(x) (x + x)\n"),
        "the macros expand to more than 400,000 words",
    ),
    "nested macro calls": (
        cuda(f"int q = {'F(' * 9000}1{')' * 9000};", "#define F(x) x\n"),
        "kernel.cu:3:",
    ),
    "a name pasted": (cuda("int q = P;", f"#define P {'a##' * 9000}a\n"), "pastes a name of more"),
    "macros in a ring": (cuda("int q = A;", "#define A B\n#define B A\n"), "A is not defined"),
    "includes itself": (cuda("", '#include "kernel.cu"\n#include "/etc/passwd"\n'), None),
    "a template without end": (
        cuda("f<0>(1);", "template <int N> __device__ int f(int n) { return f<N + 1>(n); }"),
        "calls nest deeper than",
    ),
    "functions in a ring": (
        cuda(
            "f(1);",
            "__device__ int f(int); __device__ int g(int n) { return f(n); }"
            " __device__ int f(int n) { return g(n); }",
        ),
        "calls itself",
    ),
    "a tree of calls": (
        cuda(
            "f24(1);",
            "__device__ int f0(int n) { return n; }\n"
            + "".join(
                f"__device__ int f{i}(int n) {{ return f{i - 1}(n) + f{i - 1}(n); }}\n"
                for i in range(1, 25)
            ),
        ),
        "stopped after",
    ),
    "types in a ring": (cuda("A q;", "typedef B A; typedef A B;"), "not understood"),
    "a constant of itself": (
        cuda("int q = X;", "constexpr int X = Y; constexpr int Y = X;"),
        "not constant",
    ),
    "a constant that is itself": (cuda("int q = X;", "constexpr int X = X;"), "not constant"),
    "an enumerator of itself": (cuda("int q = X;", "enum { X = X };"), "not understood"),
    "a large array": (cuda("float s[1000000000000]; s[0] = 1;"), "stopped after"),
    "a loop without end": (cuda("for (;;) {}"), "kernel.cu:2:"),
    "a loop that threads leave apart": (
        cuda("for (int q = threadIdx.x; q >= 0; q ^= 1) if (q & 1) __syncthreads();"),
        "kernel.cu:2:",
    ),
}
HEAVY = {
    (side, name): told
    for side, table in (("cuda", HEAVY_CUDA), ("nki", HEAVY_NKI))
    for name, told in table.items()
}
MIB = 1024 * 1024
# What both verbs refuse at the same step is refused once.
COMPARED = [("nki", name) for name in HEAVY_NKI] + [
    ("cuda", name)
    for name in (
        "20 MB",
        "a long comment",
        "parentheses",
        "a macro bomb",
        "a template without end",
        "functions in a ring",
        "a tree of calls",
        "a large array",
        "a loop without end",
        "a loop that threads leave apart",
    )
]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """What `run` and `score` made of each heavy file."""
    asked = {}
    for number, ((side, name), (text, _)) in enumerate(HEAVY.items()):
        folder = tmp_path_factory.mktemp(f"heavy{number}")
        put(folder)
        (folder / FILES[side]).write_text(text)
        for verb in ("run", "score"):
            if verb == "score" and (side, name) not in COMPARED:
                continue
            asked[side, name, verb] = (folder, commands(side)[verb])
    return dict(zip(asked, limited.run(list(asked.values())), strict=True))


@pytest.mark.parametrize(("side", "name"), HEAVY)
def test_a_heavy_file_is_run_or_refused_within_bounds(side, name, done):
    made, (_, message) = done[side, name, "run"], HEAVY[side, name]
    assert made.memory < 1024 * MIB
    if message is None:
        assert (made.code, made.err) == (OK, "")
        return
    assert made.code == USAGE
    assert made.out == ""
    assert sentence(made.err)
    assert made.err.startswith(f"migrate: {FILES[side]}:")
    assert message in made.err


@pytest.mark.parametrize(("side", "name"), COMPARED)
def test_a_heavy_file_is_compared_within_bounds(side, name, done):
    made, (_, message) = done[side, name, "score"], HEAVY[side, name]
    assert made.memory < 1024 * MIB
    assert "internal error" not in made.out
    if message is None:
        assert made.code == OK
    else:
        assert made.code in (SAYS_NO, USAGE, UNDETERMINED)
    assert sentence(made.err) if made.code == USAGE else made.err == ""


# -- what a reviewed file would do if it were executed ----------------------------------

EVIL = f"""
import os, socket, subprocess, sys
os.remove("marker")
os.system("rm marker")
subprocess.run(["rm", "marker"])
open("marker", "w").close()
socket.create_connection(("127.0.0.1", 9))
exec("import os; os.remove('marker')")
__import__("os").remove("marker")
class Gone:
    os.remove("marker")
    def __init_subclass__(cls): os.remove("marker")
class Goner(Gone): pass
def gone(x=os.remove("marker"), *, y: os.remove("marker") = 1): return x
N = [os.remove("marker") for _ in range(1)]
{NKI.replace("@nki.jit", "@(lambda f: os.remove('marker') or f)" + chr(10) + "@nki.jit")}
if __name__ == "__main__" or True:
    os.remove("marker")
"""
EVIL_WITHIN = pairs.nki(
    """
    import os
    os.remove("marker")
    f"{os.remove('marker')}"
    __import__("os").remove("marker")
    exec("os.remove('marker')")
    eval("os.remove('marker')")
    open("marker", "w")
    ().__class__.__base__.__subclasses__()
    getattr(os, "remove")("marker")
    return x
    """
)
EVIL_CUDA = f"""
#include "marker"
#include_next </etc/passwd>
#pragma GCC poison marker
#define GONE system("rm marker")
static int gone = system("rm marker") + GONE;
{CUDA.replace("{", '{ system("rm marker"); GONE; fopen("marker", "w"); ', 1)}
"""
EVIL_CASE = CASE.replace('"ceil_div(n, 128)"', "\"__import__('os').remove('marker')\"")
EVILS = {
    "top level": ("kernel.py", EVIL),
    "kernel": ("kernel.py", EVIL_WITHIN),
    "cuda": ("kernel.cu", EVIL_CUDA),
    "case": ("case.toml", EVIL_CASE),
}


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """Every verb on every file that means harm."""
    asked = {}
    for name, (file, text) in EVILS.items():
        folder = tmp_path_factory.mktemp("evil")
        put(folder)
        (folder / file).write_text(text)
        (folder / "marker").write_text("here")
        # Modules that Python would find first if the folder were on its path.
        for module in ("nki", "numpy", "os", "tree_sitter", "sitecustomize", "conftest"):
            (folder / f"{module}.py").write_text("open('marker', 'w').close()")
        for verb, command in commands("cuda" if file == "kernel.cu" else "nki").items():
            asked[name, verb] = (folder, command)
        asked[name, "review"] = (folder, ["review", "kernel.cu", "kernel.py"])
    done = limited.run(list(asked.values()))
    return {
        key: (folder, made) for (key, (folder, _)), made in zip(asked.items(), done, strict=True)
    }


@pytest.mark.parametrize("name", EVILS)
def test_nothing_of_a_reviewed_file_is_executed(name, reviewed):
    for key, (folder, made) in reviewed.items():
        if key[0] == name:
            assert made.code in (OK, SAYS_NO, USAGE, UNDETERMINED), (key, made.err)
            assert (folder / "marker").read_text() == "here"


def test_what_is_forbidden_would_be_noticed(folder):
    command = [*commands("nki")["run"], "-o", "out.npz"]
    (made,) = limited.run([(folder, command)])
    assert made.code == limited.FORBIDDEN
    assert "forbidden: open" in made.err
