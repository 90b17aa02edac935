"""Which versions of NKI a kernel can run on: what decides, conflicts, unknown names."""

import textwrap

import pytest

from migrate.nki.parse import parse
from migrate.nki.versions import detect
from migrate.source import Source, SourceError

NEW = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
OLD = (
    "import neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\n"
    "import neuronxcc.nki.language as nl\n"
)
NEUTRAL = ""
"""No imports: the frame that a kernel is pasted into has them."""


def detected(body, imports=NEW, parameters="x", name="kernel"):
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    text = f"{imports}\n@nki.jit\ndef kernel({parameters}):\n{lines}\n"
    return detect(parse(Source.of(text, "kernel.py")), name)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        # namespace and style
        ("nisa.dma_copy(dst=x, src=x)", "0.2.0 or later"),
        ("a = nl.ndarray((128, 4), nl.float32, buffer=nl.sbuf)", "0.2.0 or later"),
        # names that came, went and came back
        ("a = nl.load(x)", "0.3.0 or later"),
        ("nisa.activate2(x, nl.exp, x, 1.0, 0.0, nl.multiply, nl.add)", "0.4.0 or later"),
        ("nl.fori_loop(0, 4, lambda i: None)", "0.6.0 or later"),
        ("a = nl.tiles(x)", "0.7.0 or later"),
        ("a = nl.float8_e8m0fnu", "0.5.0 or later"),
        ("a = nl.tile_size.psum_num_banks", "0.5.0 or later"),
        ("for i in nl.dynamic_range(4):\n    pass", "0.2.0 to 0.6.0"),
        ("nisa.tensor_copy_dynamic_src(x, x)", "0.2.0 to 0.3.0"),
        # operators exist where functions of the name do not
        ("nisa.activation(dst=x, op=nl.exp, data=x)", "0.2.0 or later"),
        ("a = nl.exp(x)", "0.3.0 or later"),
        # parameters
        ("nisa.nc_matmul(x, x, x, accumulate=True)", "0.2.0 or later"),
        ("nisa.dma_copy(x, x, dst_rmw_op=nl.add)", "0.2.0"),
        ("nisa.dma_compute(x, [x], reduce_op=nl.add)", "0.3.0 or later"),
        ("nisa.dma_compute(x, [x], [1.0], nl.add)", "0.2.0"),
        ("nisa.register_move(x, imm=4)", "0.2.0"),
        ("nisa.tensor_scalar_reduce(x, x, nl.add, 1.0, nl.add)", "0.6.0 or later"),
        # constructs of the language
        ("nisa.dma_copy(dst=x, src=x, dge_mode=2)", "0.2.0"),
        ("a = nl.ndarray((4, 4), nl.float32, buffer='sbuf')", "0.2.0"),
        ("out = nl.ndarray((4, 4), nl.float32, buffer=nl.hbm)\nreturn out", "0.2.0"),
        ("out = nl.ndarray((4, 4), nl.float32, buffer=nl.hbm)\nreturn x", "0.2.0 or later"),
        (
            "p = nl.ndarray((4, 4), nl.float32, buffer=nl.psum)\nnisa.dma_copy(x, p[0:2, 0:4])",
            "0.2.0",
        ),
        ("a = nl.ndarray((4, 4), nl.int32, buffer=nl.sbuf)\nnisa.memset(a, 1.0)", "0.2.0"),
        ("a = nl.ndarray((4, 4), nl.int32, buffer=nl.sbuf)\nnisa.memset(a, 1)", "0.2.0 or later"),
        ("r = nisa.register_alloc(4)\nwhile r:\n    pass", "0.2.0 to 0.6.0"),
        (
            "a = nl.ndarray((4, 4), nl.int32, buffer=nl.sbuf)\nb = a.permute((0, 1))",
            "0.5.0 or later",
        ),
    ],
)
def test_the_versions_of_the_current_namespace(body, words):
    assert detected(body).words == words


@pytest.mark.parametrize(
    "body",
    [
        "a = nisa.tensor_copy(x)",
        "nl.store(x, nl.load(x, mask=x))",
        "i = nl.arange(128)[:, None]",
        "nisa.dma_copy(dst=x, src=x)",
    ],
)
def test_the_old_namespace_is_the_first_version(body):
    found = detected(body, OLD)
    assert (found.words, found.generation, found.conflict) == ("0.1.0", "0.1", ())
    assert "neuronxcc.nki" in found.upper[0].message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("a = nisa.tensor_copy(x)", "0.1.0"),
        ("a[...] = nisa.reciprocal(x)", "0.1.0"),
        ("nisa.tensor_copy(x, x)", "0.2.0 or later"),
        ("nisa.tensor_tensor(x, x, x, nl.add)", "0.2.0 or later"),
        ("nisa.memset(x, 0.0)", "0.2.0 or later"),
        ("a = nl.load(x)", "0.1.0, 0.3.0 or later"),
        ("p = nl.zeros((4, 4), nl.float32)\np += nl.matmul(x, x)", "0.1.0"),
        ("pass", "0.1.0 or later"),
    ],
)
def test_without_imports_the_style_of_calls_decides(body, words):
    assert detected(body, NEUTRAL).words == words


def test_reasons_have_a_place_and_say_what_decides():
    found = detected("a = nl.load(x)\nfor i in nl.dynamic_range(4):\n    pass")
    assert (found.lowest, found.highest) == ("0.3.0", "0.6.0")
    (lower,) = found.lower
    assert lower.span.start_line == 7
    assert lower.message == (
        "`nl.load(…)` as it is called here: in 0.1.0 and from 0.3.0 on (in 0.2.0 it does not exist)"
    )
    (upper,) = found.upper
    assert upper.span.start_line == 8
    assert "up to 0.6.0" in upper.message


def test_helpers_of_the_file_count_and_other_functions_do_not():
    text = NEW + textwrap.dedent(
        """
        COUNT = nl.tile_size.psum_num_banks

        @nki.jit
        def kernel(x):
            helper(x, COUNT)

        def helper(x, n):
            nisa.nc_matmul(x, x, x)

        @nki.jit
        def other(x):
            nl.fori_loop(0, 4, helper)
        """
    )
    module = parse(Source.of(text, "kernel.py"))
    assert detect(module, "kernel").lowest == "0.5.0"
    assert detect(module, "other").lowest == "0.6.0"
    assert detect(module).lowest == "0.6.0"


def test_a_conflict_has_the_line_that_stands_alone_first():
    found = detected(
        """
        a = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=a, src=x)
        a[...] = nisa.reciprocal(x)
        """
    )
    assert found.words == "none"
    assert [reason.span.start_line for reason in found.conflict] == [9, 1]
    assert found.generation == "0.2+"


def test_a_call_that_fits_no_version_is_a_conflict_by_itself():
    found = detected("nisa.tensor_copy(dst=x)", NEUTRAL)
    (reason,) = found.conflict
    assert "in no version (in 0.7.0 its parameter `src` is missing)" in reason.message


def test_a_file_for_both_namespaces_is_left_open():
    imports = (
        "try:\n    import nki.isa as nisa\nexcept ImportError:\n"
        "    import neuronxcc.nki.isa as nisa\nimport nki\n"
    )
    found = detected("a = nisa.tensor_copy(x)\nnisa.tensor_copy(x, x)", imports)
    assert (found.words, found.open, found.conflict) == ("unknown", True, ())


@pytest.mark.parametrize(
    ("body", "written", "near"),
    [
        ("nisa.tensor_scaler(x, x)", "nisa.tensor_scaler", "nki.isa.tensor_scalar"),
        ("a = nl.flaot32", "nl.flaot32", "nki.language.float32"),
        ("a = nisa.dge_mode.hardware", "nisa.dge_mode.hardware", None),
        ("a = nl.tile_size.pmaxx", "nl.tile_size.pmaxx", "nki.language.tile_size.pmax"),
        ("nisa.load(x)", "nisa.load", "nki.language.load"),
    ],
)
def test_unknown_names_have_a_place_and_suggestions(body, written, near):
    (unknown,) = detected(body).unknown
    assert unknown.reason.written == written
    assert unknown.reason.span.start_line == 7
    assert near is None or near in unknown.near
    assert "in no version of NKI" in unknown.message


@pytest.mark.parametrize(
    "body",
    [
        "a = nki._internal.thing(x)",
        "a = nki.experimental.thing(x)",
        "if hasattr(nl, 'newer'):\n    a = nl.newer(x)",
        "nl = other()\na = nl.anything(x)",
        "a = nisa.constants.dge_mode.hwdge",
        "a = x.anything",
    ],
)
def test_what_no_documentation_covers_is_not_called_unknown(body):
    assert detected(body).unknown == ()


def test_what_stands_under_a_condition_is_marked():
    found = detected("if x:\n    nl.fori_loop(0, 4, x)\nnl.load(x)")
    conditional = {reason.span.start_line: reason.conditional for reason in found.reasons}
    assert conditional == {1: False, 8: True, 9: False}


def test_doubtful_constructs_are_told_and_narrow_nothing():
    found = detected("if x is None:\n    pass", parameters="x=None")
    assert found.words == "0.2.0 or later"
    (remark,) = found.remarks
    assert "`is` or `is not`" in remark.message
    assert remark.doubt


def test_keyword_only_parameters_and_grids():
    found = detected("nisa.dma_copy(x, x)", parameters="x, *, flag=True")
    assert found.versions == {"0.2.0", "0.7.0"}
    text = f"{OLD}\n@nki.jit\ndef kernel(x):\n    pass\n\nkernel[2, 4](x)\n"
    found = detect(parse(Source.of(text, "kernel.py")), "kernel")
    assert found.highest == "0.1.0"


def test_annotations_of_the_old_namespace_go_with_the_new_one():
    imports = NEW + "import neuronxcc.nki.typing as nt\n"
    found = detected("nisa.dma_copy(x, x)", imports, parameters="x: nt.mutable_tensor")
    assert (found.words, found.open) == ("0.2.0 or later", False)


def test_an_element_of_something_with_the_kernels_name_is_no_launch():
    text = (
        f"{NEW}\n@nki.jit\ndef kernel(x):\n    pass\n\ndef check(kernel):\n    kernel[2, 4] = 0\n"
    )
    assert detect(parse(Source.of(text, "kernel.py")), "kernel").words == "0.2.0 or later"


def test_what_a_helper_returns_is_no_output():
    text = NEW + textwrap.dedent(
        """
        @nki.jit
        def kernel(x):
            return copied(x)

        @nki.jit
        def copied(x):
            out = nl.ndarray((4, 4), nl.float32, buffer=nl.hbm)
            return out
        """
    )
    assert detect(parse(Source.of(text, "kernel.py"))).words == "0.2.0 or later"


def test_arguments_that_are_spread_narrow_nothing():
    assert detected("nisa.nc_matmul(*x)").words == "0.2.0 or later"
    assert detected("nisa.nc_matmul(x, **y)").words == "0.2.0 or later"


def test_what_is_kept_of_a_hostile_file_is_bounded():
    names = "\n".join(f"nl.name{n}(x)" for n in range(3_000))
    assert len(detected(names).unknown) == 200
    imports = NEW + "\n".join(f"from nki.isa import thing{n} as nisa" for n in range(3_000))
    assert len(detected("nisa.x(1)", imports).reasons) < 10
    branches = "\n".join(f"if x:\n    nl.fori_loop(x{n})" for n in range(2_000))
    assert all(reason.conditional for reason in detected(branches).reasons[1:])
    chain = "nl." + ".".join(["a" * 200] * 100)
    (unknown,) = detected(chain).unknown
    assert len(unknown.reason.written) <= 80


def test_a_kernel_that_is_not_python_is_refused_with_its_place():
    with pytest.raises(SourceError, match=r"kernel.py:2:\d+: is not Python"):
        parse(Source.of("import nki\ndef kernel(:\n", "kernel.py"))
