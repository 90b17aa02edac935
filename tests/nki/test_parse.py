from __future__ import annotations

import pytest

from migrate.nki.parse import parse
from migrate.source import Source, SourceError
from tests.nki.kernels import HEADER, VECTOR_ADD, module


@pytest.mark.parametrize(
    "decorator",
    ["@nki.jit", "@nki.jit()", "@nki.jit(mode='auto')", "@jit", "@nki.baremetal", "@nki_jit"],
)
def test_decorated_functions_are_kernels(decorator: str) -> None:
    text = f"{HEADER}\n{decorator}\ndef f(a, *, b=1):\n    return a\n\ndef g(a):\n    return a\n"
    (kernel,) = module(text).kernels
    assert (kernel.name, kernel.parameters, kernel.decorated) == ("f", ("a", "b"), True)


def test_a_wrapped_function_is_a_kernel() -> None:
    text = f"{HEADER}\ndef f(a):\n    return a\n\nkernel = nki.jit(f)\n"
    assert [k.name for k in module(text).kernels] == ["f"]


def test_without_decorators_functions_that_use_the_api_are_offered() -> None:
    text = (
        f"{HEADER}\ndef helper(t):\n    nisa.memset(t, 0.0)\n\n"
        "def top(a):\n    helper(a)\n    nisa.memset(a, 1.0)\n\ndef host(a):\n    return a\n"
    )
    assert [(k.name, k.decorated) for k in module(text).kernels] == [("top", False)]


def test_the_namespace_tells_the_generation() -> None:
    assert module(VECTOR_ADD).generation == "0.2+"
    assert module("import neuronxcc.nki as nki\n").generation == "0.1"
    assert module("import numpy\n").generation is None


def test_kernel_spans_cover_the_function() -> None:
    found = module(VECTOR_ADD)
    text = found.source.excerpt(found.kernel("vector_add").span)
    assert text.startswith("def vector_add")
    assert text.endswith("return out")


def test_an_unknown_kernel_is_named_with_those_there_are() -> None:
    with pytest.raises(SourceError, match=r"no kernel 'f' \(kernels: vector_add\)"):
        module(VECTOR_ADD).kernel("f")


def test_syntax_errors_carry_their_place() -> None:
    with pytest.raises(SourceError, match="is not Python") as caught:
        module("import nki\n\ndef f(:\n    pass\n")
    assert caught.value.where is not None
    assert caught.value.where.start_line == 3


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "-" * 100_000 + "1",
        "x = " + "not " * 50_000 + "1",
        "x = " + "a**" * 50_000 + "1",
        "x = " + "a if b else " * 20_000 + "1",
        "x = " + "a + " * 100_000 + "1",
        "x = a" + ".b" * 100_000,
        "x = a" + "()" * 100_000,
        "if a:\n    pass\n" + "elif a:\n    pass\n" * 20_000,
        "x = " + "1" * 100_000,
        "x = " + "[1, " * 150 + "]" * 150,
        "x\n" * 500_000,
    ],
    ids=[
        "brackets", "minus", "not", "power", "conditional", "sum", "attributes", "calls", "elif",
        "digits", "lists", "names",
    ],
)  # fmt: skip
def test_hostile_nesting_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(Source.of(text, "hostile.py"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("hostile.py")


HOST = "import torch\nfrom {module} import {name} as nisa\nimport nki.language as nl\n\n\n"


def test_functions_that_only_name_formats_are_no_kernels() -> None:
    text = HOST.format(module="nki", name="isa") + (
        "def arrays(rows):\n    return torch.ones(rows), nl.bfloat16\n\n\n"
        "def doubled(dst, data):\n    nisa.tensor_scalar(dst, data, nl.multiply, 2.0)\n"
    )
    assert [kernel.name for kernel in parse(Source.of(text, "a.py")).kernels] == ["doubled"]


def test_functions_that_call_something_else_by_the_name_of_a_namespace_are_no_kernels() -> None:
    text = HOST.format(module="nki.compiler.dialects", name="nisa") + (
        "def doubled(dst, data):\n    nisa.tensor_scalar(dst, data)\n"
    )
    assert not parse(Source.of(text, "a.py")).kernels
