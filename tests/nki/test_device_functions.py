"""Which functions of a file run on the device."""

from __future__ import annotations

import textwrap

import pytest

from migrate.nki.device_functions import device_functions
from migrate.nki.parse import parse
from migrate.source import Source


def roles(text: str) -> dict[str, str]:
    module = parse(Source.of(textwrap.dedent(text), "kernels.py"))
    return {function.name: function.role for function in device_functions(module)}


def test_kernels_by_their_decorators_and_helpers_by_what_they_call():
    found = roles(
        """
        import nki
        import nki.isa as isa
        from nki import language as lang

        @nki.jit
        def kernel(x):
            return helper(x)

        @nki.jit(platform_target="trn2")
        def configured(x):
            return x

        def helper(x):
            isa.memset(dst=x, value=0.0)

        def sized(x):
            return lang.ds(0, 128)

        def host(x):
            return kernel(x)
        """
    )
    assert found == {
        "kernel": "kernel",
        "configured": "kernel",
        "helper": "helper",
        "sized": "helper",
    }


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("from neuronxcc import nki", "nki.baremetal"),
        ("from neuronxcc import nki", "nki.benchmark(warmup=2)"),
        ("from neuronxcc.nki import profile", "profile(working_directory='.')"),
        ("import neuronxcc.nki", "neuronxcc.nki.jit"),
        ("from torch_neuronx import nki_jit", "nki_jit()"),
        ("import torch_neuronx", "torch_neuronx.nki_jit"),
        ("", "nki.jit"),
        ("", "jit"),
    ],
)
def test_what_makes_a_kernel(imports, decorator):
    assert roles(f"{imports}\n@{decorator}\ndef kernel(x):\n    return x\n") == {"kernel": "kernel"}


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("from jax import jit", "jit"),
        ("import numba", "numba.jit"),
        ("import line_profiler as nki", "nki.profile"),
    ],
)
def test_what_is_decorated_by_others_is_no_kernel(imports, decorator):
    assert roles(f"{imports}\n@{decorator}\ndef host(x):\n    return x\n") == {}


def test_names_that_an_import_binds_to_something_else_are_not_nki():
    text = "def emit(x):\n    return nisa.memset(x, 0)\n"
    assert roles("from mlir.dialects import nisa\n" + text) == {}
    assert roles(text) == {"emit": "helper"}


def test_of_two_imports_of_one_name_the_one_of_nki_counts():
    found = roles(
        """
        try:
            import nki.language as nl
        except ImportError:
            import substitute as nl

        def helper(x):
            nl.store(x, 0)
        """
    )
    assert found == {"helper": "helper"}


def test_methods_and_nested_functions_have_the_names_around_them():
    found = roles(
        """
        import nki
        import nki.language as nl

        class Pool:
            def take(self, size):
                return nl.ndarray(size, dtype=nl.float32, buffer=nl.sbuf)

        def made(size):
            @nki.jit
            def kernel(x):
                return nl.load(x)
            return kernel

        def outer(x):
            def inner():
                nl.store(x, 0)
            return inner
        """
    )
    assert found == {"Pool.take": "helper", "made.kernel": "kernel", "outer.inner": "helper"}


def test_deep_nesting_is_no_matter_of_the_stack():
    depth = 60
    lines = ["import nki.language as nl"]
    for level in range(depth):
        lines.append("    " * level + f"def f{level}():")
    lines.append("    " * depth + "nl.ds(0, 1)")
    assert list(roles("\n".join(lines)).values()) == ["helper"]
