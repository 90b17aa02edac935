"""What wrappers hand over, give back and launch, read from their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.host.values import (
    UNKNOWN,
    Array,
    Cast,
    Created,
    Flattened,
    Inserted,
    Opaque,
    Padded,
    Parameter,
    Permuted,
    Placed,
    Reshaped,
    Result,
    Sliced,
    Swapped,
    Transposed,
)
from migrate.host.wrappers import Wrapper, wrappers
from migrate.ir.index import Index
from migrate.numerics.dtypes import DType
from migrate.pipeline.kernels import parse_nki
from migrate.source import Source

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import torch
import torch.nn.functional as F

@nki.jit
def kernel(x, y, scale=1.0):
    return x
"""

N, D = Index.size("x.shape[0]"), Index.size("x.shape[1]")


def found(text: str) -> tuple[Wrapper, ...]:
    module = parse_nki(Source.of(KERNEL + text, "kernel.py"))
    return wrappers(module, module.kernels[0])


def only(body: str, parameters: str = "x, y") -> Wrapper:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (wrapper,) = found(f"\ndef run({parameters}):\n{lines}")
    return wrapper


def handed(body: str, parameters: str = "x, y", name: str = "x") -> Array:
    value = only(body, parameters).arguments[name]
    assert isinstance(value, Array)
    return value


def kinds(array: Array) -> list[type]:
    return [type(step) for step in array.steps]


@pytest.mark.parametrize(
    ("expression", "steps"),
    [
        ("x", []),
        ("x.T", [Transposed]),
        ("x.mT", [Swapped]),
        ("x.transpose(-1, -2)", [Swapped]),
        ("torch.transpose(x, 0, 1)", [Swapped]),
        ("np.transpose(x, (0, 2, 1))", [Permuted]),
        ("x.permute(0, 2, 1).contiguous()", [Permuted]),
        ("x.reshape(2, -1).half()", [Reshaped, Cast]),
        ("x.flatten(0, 1)", [Flattened]),
        ("x.unsqueeze(0)", [Inserted]),
        ("x[None, :]", [Inserted]),
        ("F.pad(x, (0, 3))", [Padded]),
        ("np.pad(x, ((0, 3), (0, 0)))", [Padded]),
        ("x[:5]", [Sliced]),
        ("torch.tensor(x).to('cpu').detach().numpy()", []),
    ],
)
def test_steps(expression: str, steps: list[type]) -> None:
    array = handed(f"return kernel({expression}, y)")
    assert array.root == Parameter("x")
    assert kinds(array) == steps


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("x * 2", "it is computed"),
        ("x @ y", "it is computed"),
        ("x[0]", "a part of it is taken"),
        ("x[::2]", "a part of it is taken"),
        ("x.softmax(-1)", "softmax is not followed"),
        ("torch.cat([x, y])", "cat of an array is not followed"),
        ("F.pad(x, (0, 3), value=1.0)", "it is padded with something else than zeros"),
        ("x.reshape(something, -1)", "the extents of reshape are not known"),
        ("x if flag else x.T", "it is one thing or another"),
        ("x.view(torch.int8)", "the extents of view are not known"),
    ],
)
def test_what_is_not_followed_has_a_reason_and_a_place(expression: str, reason: str) -> None:
    array = handed(f"x.shape, y.shape\nreturn kernel({expression}, y)")
    assert isinstance(array.root, Opaque)
    assert reason in array.root.reason
    assert array.root.span.start_line == 15


def test_a_list_of_arrays_is_no_array() -> None:
    assert only("return kernel([x, y], y)").arguments["x"] == (
        Array(Parameter("x")),
        Array(Parameter("y")),
    )


def test_extents_and_formats() -> None:
    array = handed("n, d = x.shape\nreturn kernel(x.reshape(d, n // 2, 2).to(torch.bfloat16), y)")
    reshaped = array.steps[0]
    assert isinstance(reshaped, Reshaped)
    assert reshaped.extents == (D, N // 2, 2)
    assert array.dtype is DType.BFLOAT16


def test_a_format_that_is_not_known() -> None:
    assert handed("return kernel(x.half().to(y.dtype), y)").dtype is None


def test_zeros_that_an_array_is_put_into() -> None:
    array = handed("n, d = x.shape\nz = torch.zeros(512, d)\nz[:n] = x\nreturn kernel(z, y)")
    (step,) = array.steps
    assert isinstance(step, Placed)
    assert (step.extents, step.part) == ((512, D), (N,))


def test_something_else_than_zeros() -> None:
    array = handed("n, d = x.shape\nz = torch.empty(512, d)\nz[:n] = x\nreturn kernel(z, y)")
    assert isinstance(array.root, Opaque)


def test_what_is_made_in_the_wrapper() -> None:
    assert handed("y = torch.zeros(3, 4)\nreturn kernel(x, y)", name="y").root == Created(True)


def test_keywords_and_constants() -> None:
    wrapper = only("return kernel(y=y, x=x, scale=0.5)")
    assert wrapper.arguments == {
        "y": Array(Parameter("y")),
        "x": Array(Parameter("x")),
        "scale": 0.5,
    }


@pytest.mark.parametrize(
    "launch",
    [
        "kernel[n // 128, 2](x, y)",
        "nki.simulate_kernel(kernel[n // 128, 2], x, y)",
        "nki.simulate(kernel[n // 128, 2])(x, y)",
        "nki.benchmark(warmup=2)(kernel)[n // 128, 2](x, y)",
        "nki.jit(kernel)[n // 128, nl.nc(2)](x, y)",
        "(lambda: 0, kernel)[1][n // 128, 2](x, y)",
    ],
)
def test_launches(launch: str) -> None:
    wrapper = only(f"n, d = x.shape\nreturn {launch}")
    assert wrapper.grid == (N // 128, 2)
    assert wrapper.arguments["x"] == Array(Parameter("x"))


def test_a_grid_that_is_a_name() -> None:
    assert only("grid = (x.shape[0], 4)\nreturn kernel[grid](x, y)").grid == (N, 4)
    assert only("return kernel[unknown](x, y)").grid == (UNKNOWN,)


def test_results() -> None:
    wrapper = only("out, stats = kernel(x, y)\nreturn stats, out[:7].T")
    assert [type(step) for step in wrapper.returned[0].steps] == [Sliced, Transposed]
    assert wrapper.returned[1].root == Result(wrapper.span, 1)


def test_results_that_differ() -> None:
    wrapper = only("out = kernel(x, y)\nif flag:\n    return out.T\nreturn out")
    assert not wrapper.returned


def test_methods_and_functions_for_gradients() -> None:
    (first, second) = found(
        "\nclass Layer(torch.nn.Module):\n"
        "    def forward(self, x, y):\n        return kernel(x.T, y)\n"
        "\nclass Function(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x, y):\n        ctx.save(x)\n        return kernel(x, y)\n"
    )
    assert first.arguments["x"] == Array(Parameter("x"), steps=(Transposed(first.span),))
    assert second.arguments["x"] == Array(Parameter("x"))


def test_a_helper_is_followed() -> None:
    (wrapper,) = found(
        "\ndef ready(t):\n    return t.contiguous().T\n"
        "\ndef run(x, y):\n    return kernel(ready(x), y)\n"
    )
    assert kinds(wrapper.arguments["x"]) == [Transposed]  # type: ignore[arg-type]


def test_tests_and_other_kernels_are_no_wrappers() -> None:
    assert not found(
        "\ndef test_kernel(x, y):\n    kernel(x.T, y)\n"
        "\n@pytest.fixture\ndef result(x, y):\n    return kernel(x.T, y)\n"
        "\n@nki.jit\ndef other(x, y):\n    return kernel(x, y)\n"
    )


def test_arrays_that_no_parameter_is() -> None:
    assert not found("\ndef main(n):\n    kernel(np.zeros((4, 4)), np.ones((4, 4)))\n")


def test_a_parameter_of_to_is_no_array() -> None:
    wrapper = only("return kernel(bundle['x'].to(dtype), y)", "bundle, y, dtype")
    array = wrapper.arguments["x"]
    assert isinstance(array, Array)
    assert isinstance(array.root, Opaque)


def test_names_that_extents_are_given() -> None:
    wrapper = only("n, d = x.shape\nm = y.shape[0]\nreturn kernel(x, y)")
    assert wrapper.axes == {("x", 0): "n", ("x", 1): "d", ("y", 0): "m"}
    assert only("assert x.shape == (d, n)\nreturn kernel(x, y)").axes == {
        ("x", 0): "d",
        ("x", 1): "n",
    }


HOSTILE = [
    "return run(x, y)",
    "while True:\n    x = x.T\nreturn kernel(x, y)",
    "for _ in range(10**12):\n    x = x.T\nreturn kernel(x, y)",
    "x += 1\nreturn kernel(x, y)",
    "x.t_()\nreturn kernel(x, y)",
    "x[0] = 3\nreturn kernel(x, y)",
    "match y:\n    case 1:\n        x = x.T\nreturn kernel(x, y)",
    "return kernel(x" + ".T" * 40 + ", y)",
    "return kernel(x.reshape(" + "9" * 60 + ", -1), y)",
    "return kernel(" + "(" * 40 + "x + 1" + ")" * 40 + ", y)",
    "n = x.shape[0]\n" + "n = n * n + n\n" * 30 + "return kernel(x.reshape(n, -1), y)",
    "return kernel(x.permute(0, 0, 0), y)",
    "return kernel(eval('x'), y)",
    "return kernel(getattr(x, 'T'), y)",
    "return kernel(*args)",
    "return kernel(**{'x': x})",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_what_is_not_understood_is_unknown(body: str) -> None:
    for wrapper in found(
        "\ndef run(x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    ):
        array = wrapper.arguments.get("x")
        assert (
            not isinstance(array, Array)
            or not isinstance(array.root, Parameter)
            or ("reshape" in body or "permute" in body)
        )


def test_functions_that_call_one_another_end() -> None:
    names = [f"f{i}" for i in range(40)]
    text = "".join(
        f"\ndef {name}(x, y):\n    {other}(x, y)\n    {other}(y, x)\n    return kernel(x, y)\n"
        for name, other in zip(names, [*names[1:], names[0]], strict=True)
    )
    assert {wrapper.function for wrapper in found(text)} <= set(names)


def test_a_wrapper_in_a_file_beside(tmp_path: Path) -> None:
    kernel = tmp_path / "kernels.py"
    kernel.write_text(KERNEL)
    (tmp_path / "ops.py").write_text(
        "from kernels import kernel as launch\n\ndef run(x, y):\n    return launch[2](x.T, y)\n"
    )
    (tmp_path / "whole.py").write_text(
        "import kernels\n\ndef run(x, y):\n    return kernels.kernel(x, y)\n"
    )
    (tmp_path / "other.py").write_text(
        "from elsewhere import kernel\n\ndef run(x, y):\n    return kernel(y, x)\n"
    )
    (tmp_path / "broken.py").write_text("from kernels import kernel\n\ndef run(x, y:\n")
    module = parse_nki(Source.of(KERNEL, "kernels.py"), str(kernel))
    first, second = wrappers(module, module.kernels[0])
    assert (first.grid, first.span.file) == ((2,), "ops.py")
    assert (second.grid, second.span.file) == (None, "whole.py")
