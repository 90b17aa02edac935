"""Reading case files: what they mean, and where what is wrong with them stands."""

import numpy as np
import pytest

from migrate.case import Case, load
from migrate.source import SourceError

KERNELS = """
[cuda]
file = "kernel.cu"
kernel = "softmax"
grid = ["R"]
block = [256]
dynamic_shared = "256 * 4"
template = { BLOCK = 256, T = "float" }
define = { TILE = 16 }

[nki]
file = "kernel.py"
target = "trn3"
args = { flag = true }

[sizes]
R = [128, 200]
C = [512, 700]
P = 128

[[tensor]]
name = "x"
shape = ["R", "C * 2"]
dtype = "float32"
role = "in"
cuda = "in"
nki = "x"
nki_layout = "transpose(1, 0)"
fill = "int(0, C)"

[[tensor]]
name = "y"
shape = ["R", 3]
role = "out"
cuda = "out"
nki_out = 0

[[scalar]]
name = "cols"
value = "C"
cuda = "cols"

[[scalar]]
name = "eps"
value = 1e-5
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("kernel.cu", "kernel.py", "y.npy"):
        (tmp_path / name).write_text("text")
    return tmp_path


def read(folder, text):
    (folder / "case.toml").write_text(text)
    return load(folder / "case.toml")


def failure(folder, text):
    with pytest.raises(SourceError) as raised:
        read(folder, text)
    return raised.value


def test_everything_that_is_said(folder):
    case = read(folder, KERNELS)
    assert case.folder == folder.resolve()
    (launch,) = case.cuda.launch
    assert (launch.kernel, launch.grid, launch.block) == ("softmax", ("R",), (256,))
    assert launch.template == {"BLOCK": 256, "T": "float"}
    assert case.cuda.define == {"TILE": 16}
    assert (case.nki.target, case.nki.kernel, case.nki.args) == ("trn3", None, {"flag": True})
    x, y = case.tensors
    assert (x.role, x.nki, y.nki_out, y.dtype) == ("in", "x", 0, None)
    assert case.path("kernel.cu") == folder.resolve() / "kernel.cu"


def test_files_are_shown_beside_the_case_as_it_was_given(folder, monkeypatch):
    (folder / "case.toml").write_text(KERNELS)
    monkeypatch.chdir(folder.parent)
    case = load(f"{folder.name}/case.toml")
    assert case.shown("kernel.cu") == f"{folder.name}/kernel.cu"
    assert case.path("kernel.cu") == folder.resolve() / "kernel.cu"
    assert Case().shown("kernel.cu") == "kernel.cu"


def test_each_position_of_the_sizes_is_a_run(folder):
    case = read(folder, KERNELS)
    assert case.runs() == (
        {"R": 128, "C": 512, "P": 128},
        {"R": 200, "C": 700, "P": 128},
    )
    second = case.runs()[1]
    assert case.tensors[0].extents(second) == (200, 1400)
    assert [scalar.resolve(second) for scalar in case.scalars] == [700, 1e-5]


def test_a_case_may_say_nothing(folder):
    case = read(folder, "# nothing\n")
    assert case.runs() == ({},)
    assert (case.cuda.launch, case.tensors, case.nki.target) == ((), (), "trn2")
    assert Case().runs() == ({},)


def test_several_launches_in_order(folder):
    case = read(
        folder,
        '[[cuda.launch]]\nkernel = "a"\ngrid = [1]\n[[cuda.launch]]\nkernel = "b"\n',
    )
    assert [launch.kernel for launch in case.cuda.launch] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[cuda]\nfil = 'kernel.cu'\n", 2, "unknown key 'fil'; did you mean 'file'?"),
        ("[size]\nN = 1\n", 1, "unknown key 'size'; did you mean 'sizes'?"),
        ("[nki]\n\nqqqq = 1\n", 3, "unknown key 'qqqq' (known here: file, kernel, target"),
        ("[[tensor]]\nname='a'\nshape=[1]\n[[tensor]]\nname='b'\nshpe=[2]\n", 6, "'shape'"),
        ("[[cuda.launch]]\n[[cuda.launch]]\ngird = [1]\n", 3, "did you mean 'grid'"),
        ("[nki]\ntarget = 'trn9'\n", 2, "'target': Invalid enum value 'trn9'"),
        ("[[tensor]]\nname = 'a'\nshape = 12\n", 3, "'shape': Expected `array`"),
        ("[[tensor]]\nname = 'a'\n", 1, "missing required field `shape`"),
        ("[tensor]\nname = 'a'\n", 1, "written [[tensor]]"),
        ("[[tensor]]\nname='a'\nshape=[1]\ndtype='flaot32'\n", 4, "did you mean 'float32'?"),
        ("[[tensor]]\nname='a'\nshape=[1]\n[[scalar]]\nname='a'\nvalue=1\n", 5, "used twice"),
        ("[[tensor]]\nname='a'\nshape=['N']\n", 3, "'shape': unknown size 'N'"),
        ("[[tensor]]\nname='a'\nshape=['1/2']\n", 3, "division is '//'"),
        ("[sizes]\nN = [1, 2]\nM = [1, 2, 3]\n", 3, "'M' has 3 values, 'N' has 2"),
        ("[sizes]\nN = []\n", 2, "has no value"),
        ("[sizes]\nN = 1.5\n", 2, "must be an integer"),
        ("[sizes]\nN = true\n", 2, "must be an integer"),
        ("[sizes]\nN = -1\n", 2, "not between 0 and 2^40"),
        ("[sizes]\nmin = 1\n", 2, "cannot be the name of a size"),
        ("[sizes]\n'a b' = 1\n", 2, "cannot be the name of a size"),
        (
            "[sizes]\nN = [2, 1]\n[[tensor]]\nname='a'\nshape=['N - 2']\n",
            5,
            "N - 2 is -1 for N=1, less than 0",
        ),
        ("[cuda]\ngrid = [1, 2, 3, 4]\n", 2, "'grid' has 1 to 3 extents, not 4"),
        ("[cuda]\nblock = [32]\n[[cuda.launch]]\n", 2, "'block' belongs into"),
        ("[cuda]\nblock = [32, 0]\n", 2, "'block': 0 is less than 1"),
        ("[cuda]\nblock = [32, 33]\n", 2, "a block of 1,056 threads, 1,024 at most"),
        ("[cuda]\ngrid = [2147483648]\n", 2, "a grid of 2,147,483,648 blocks"),
        ("[cuda]\ngrid = [1, 65536]\n", 2, "a grid of 1 x 65,536 blocks"),
        ("[nki]\ngrid = [64, 32]\n", 2, "2,048 programs, 1,024 at most"),
        ("[cuda]\ndefine = { 'A B' = 1 }\n", 2, "'A B' is not a macro of one line"),
        ('[cuda]\ndefine = { A = "1\\n2" }\n', 2, "'A' is not a macro of one line"),
        ("[[scalar]]\nname='a'\nvalue=inf\ndtype='int32'\n", 3, "inf is no int32"),
        ("[[scalar]]\nname='a'\nvalue=-1\ndtype='uint32'\n", 3, "-1 is no uint32"),
        ("[[scalar]]\nname='a'\nvalue=0.5\ndtype='int32'\n", 3, "0.5 is no int32"),
        ("[[tensor]]\nname='a'\nshape=[2]\nfill='norml'\n", 4, "unknown fill 'norml'"),
        ("[[tensor]]\nname='a'\nshape=[2]\nfill='int(3, 3)'\n", 4, "holds no number"),
        ("[[tensor]]\nname='a'\nshape=[2]\nfill='ones'\nrole='out'\n", 4, "takes no fill"),
        ("[[tensor]]\nname='a'\nshape=[2]\nnki_layout='flip(0)'\n", 4, "unknown step 'flip'"),
        ("[[tensor]]\nname='a'\nshape=[2, 3]\nnki_layout='transpose(0)'\n", 4, "does not fit"),
        ("[[tensor]]\nname='a'\nshape=[2000000000]\n", 3, "more than 2^30 elements"),
        ("[[tensor]]\nname='a'\nshape=[2]\nexpect='y.txt'\n", 4, "must name a .npy file"),
        ("[cuda]\nfile = 'other.cu'\n", 2, "no such file in the folder"),
        ("[cuda]\nfile = '../kernel.cu'\n", 2, "leaves the folder of the case"),
        ("[cuda]\nfile = '/etc/passwd'\n", 2, "leaves the folder of the case"),
        ('[cuda]\nfile = "a\\u0000b"\n', 2, "is not a path that can be used"),
        ("a = 1\nb = [\n", 3, "is not TOML"),
        ("a = 1\nb = = 2\n", 2, "is not TOML: Invalid value"),
    ],
)
def test_what_is_wrong_says_where(folder, text, line, message):
    error = failure(folder, text)
    assert message in error.message
    assert error.where is not None
    assert error.where.start_line == line
    assert error.file.endswith("case.toml")


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.cu"
    outside.write_text("text")
    (folder / "link.cu").symlink_to(outside)
    assert "leaves the folder" in failure(folder, "[cuda]\nfile = 'link.cu'\n").message


@pytest.mark.parametrize("key", ["fill", "expect"])
def test_a_pickle_is_refused_where_it_is_named(folder, key):
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    error = failure(folder, f"[[tensor]]\nname='a'\nshape=[1]\n{key}='objects.npy'\n")
    assert error.message == "'objects.npy' holds Python objects (pickle), never loaded"
    assert error.where.start_line == 4


def test_deep_nesting_is_refused(folder):
    assert "nested too deeply" in failure(folder, "a = " + "[" * 50_000).message


def test_a_large_case_is_refused(folder):
    assert "larger than 64 KiB" in failure(folder, "# " + "x" * 300_000).message


def test_keys_after_strings_that_look_like_toml_are_found(folder):
    text = (
        'nothing = """\n[cuda]\nfil = 1 # "\n"""\n'
        "list = [\n  'a]', # ]\n  \"b = [\",\n]\n"
        "[cuda]\n'fil' = 2\n"
    )
    # The unknown keys come in the order of the text; take them away one by one.
    assert failure(folder, text).where.start_line == 1
    text = text.replace("nothing", "#", 1).replace('"""\n[cuda]\nfil = 1 # "\n"""', "", 1)
    assert failure(folder, text).where.start_line == 2
