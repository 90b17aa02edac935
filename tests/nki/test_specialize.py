from __future__ import annotations

import pytest

from migrate.budget import Budget, Meter
from migrate.ir.index import Index, ceil_div, minimum
from migrate.nki.specialize import specialize
from migrate.nki.values import TensorSpec
from migrate.numerics.dtypes import DType
from migrate.source import SourceError
from tests.nki.kernels import BODY_LINE, HEADER, ROWS, VECTOR_ADD, kernel, module, stream, tensor

TILE, N = Index.axis("i"), Index.size("a0")


def test_a_tiled_vector_add_unrolls_with_its_remainder() -> None:
    args = {"a": tensor("a", 2 * 1024 + 200), "b": tensor("b", 2 * 1024 + 200)}
    found, result = stream(VECTOR_ADD, args, "vector_add")
    assert result.complete
    assert [i.opcode for i in found] == ["dma_copy", "dma_copy", "tensor_tensor", "dma_copy"] * 4
    assert all(not i.problems for i in found)
    assert [[v.iteration for v in i.loops] for i in found[::4]] == [[0], [1], [0], [1]]
    assert [view.sizes for view in result.returned] == [(2248,)]


def test_numbers_stay_symbolic() -> None:
    args = {"a": tensor("a", 2 * 1024 + 200), "b": tensor("b", 2 * 1024 + 200)}
    found, _ = stream(VECTOR_ADD, args, "vector_add")
    trips = found[0].loops[0].trips
    assert trips is not None
    assert trips.index() == N // 1024
    source = found[4].view("src")
    assert source is not None
    assert source.index[0].start.index() == TILE * 1024
    assert source.offset == 1024
    rest = found[12].view("src")
    assert rest is not None
    j = Index.axis("j")
    done = (N // 1024) * 1024
    assert rest.index[0].start.index() == done + j * 128
    assert rest.shape[0].index() == minimum(128, N - done - j * 128)
    assert rest.sizes == (72, 1)
    last_trips = found[12].loops[0].trips
    assert last_trips is not None
    assert last_trips.index() == ceil_div(N - done, 128)


def test_sources_lead_to_the_lines_that_decide_a_number() -> None:
    args = {"a": tensor("a", 2048), "b": tensor("b", 2048)}
    found, _ = stream(VECTOR_ADD, args, "vector_add")
    source = found[0].view("src")
    assert source is not None
    text = module(VECTOR_ADD).source
    shown = {text.excerpt(span) for span in source.shape[1].sources()}
    assert shown == {"8"}
    assert text.line(source.shape[1].sources()[0].start_line) == "WIDTH = 8"


def test_views_say_where_they_stand_in_every_dimension() -> None:
    found, _ = stream(
        kernel(
            """
t = nl.ndarray((128, 4, 64), dtype=nl.float32, buffer=nl.sbuf)
for i in range(3):
    nisa.memset(t[32:64, i, 2 * i : 2 * i + 8 : 2], 0.0)
return x
"""
        ),
        {"x": tensor("x", 4)},
    )
    view = found[2].view("dst")
    assert view is not None
    assert view.sizes == (32, 4)
    assert view.strides == (256, 2)
    assert view.offset == 32 * 256 + 2 * 64 + 4
    assert [str(a.start.index()) for a in view.index] == ["32", "i", "2*i"]
    assert [[(axis, n.value) for axis, n in a.terms] for a in view.index] == [
        [(0, 1)],
        [],
        [(1, 2)],
    ]


def test_integer_indices_keep_on_chip_tiles_at_rank_two() -> None:
    found, _ = stream(
        kernel(
            """
t = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(t[3, 2:4], 0.0)
nisa.memset(t[:, 5], 0.0)
return x[1]
"""
        ),
        {"x": tensor("x", 4, 6)},
    )
    sizes = [i.view("dst").sizes for i in found if i.view("dst")]  # type: ignore[union-attr]
    assert sizes == [(1, 2), (128, 1)]


def test_helpers_are_inlined_with_the_calls_in_the_span() -> None:
    text = HEADER + (
        "\n\ndef clear(t):\n    nisa.memset(t, 0.0)\n\n\n"
        "@nki.jit\ndef k(x):\n"
        "    t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)\n"
        "    clear(t)\n    clear(t)\n    return x\n"
    )
    found, _ = stream(text, {"x": tensor("x", 4)})
    first, second = found
    assert first.site is not second.site
    assert first.span.start_line == second.span.start_line == 8
    assert [frame.line for i in found for frame in i.span.via] == [14, 15]
    assert [frame.name for frame in first.span.via] == ["clear"]


def test_python_of_kernels() -> None:
    body = """
def helper(value, *rest, scale=2, **more):
    return value * scale + len(rest) + more.get("bias", 0)

tiles = []
for k, (w, name) in enumerate(zip([4, 8, 16], ("a", "b", "c"))):
    if k == 1:
        continue
    t = nl.ndarray((128, w), dtype=nl.float32, buffer=nl.sbuf, name=f"{name}_{w:03d}")
    tiles.append(t)
widths = {t.name: t.shape[1] for t in tiles}
total = 0
while total < 10:
    total += 3
    if total > 100:
        break
else:
    total -= 1
first, *others = [w for w in widths.values() if w % 2 == 0]
assert first == 4 and others == [16], f"{first}"
assert helper(3, 1, 2, bias=5) == 13
assert (lambda z: -z // 2)(7) == -4
assert divmod(7, 2) == (3, 1) and abs(-3) == max(1, 3) and 1 < total <= 11
assert "a_004" in widths and isinstance(total, int) and not isinstance(total, float)
assert total == 11
for t in tiles:
    nisa.memset(t[:, 0:total % 4], float(total))
return x
"""
    found, result = stream(kernel(body), {"x": tensor("x", 4)})
    assert result.events == ()
    assert [i.view("dst").sizes for i in found if i.view("dst")] == [(128, 3)] * 2  # type: ignore[union-attr]
    assert len(result.assertions) == 6


def test_a_failed_assertion_ends_the_reading_with_its_message() -> None:
    found, result = stream(
        kernel("r, c = x.shape\nassert r % 128 == 0, f'rows: {r}'\nreturn x"),
        {"x": tensor("x", 100, 4)},
    )
    assert found == []
    (event,) = result.events
    assert (event.kind, event.message) == ("assert", "rows: 100")
    assert event.span is not None
    assert event.span.start_line == BODY_LINE + 1
    assert not result.complete


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nisa.memset(y, 0.0)", "the name y is not defined"),
        ("z = [1, 2][2]", "index 2 in a list of 2"),
        ("z = x.shape[0] // 0", "integer division or modulo by zero"),
        ("z = 'a' + 1", "the string 'a' + the integer 1"),
        ("nisa.tensor_copy(dst=x)", "tensor_copy is not given src"),
        ("nisa.no_such(dst=x)", "not read"),
        ("a, b = 1, 2, 3", "3 values for 2 names"),
        ("z = 2 ** 400", "an integer needs more than 64 bits"),
        ("def f(n):\n    return f(n)\nf(1)", "calls are nested too deeply"),
    ],
)
def test_errors_of_the_kernel_are_reported_at_their_line(line: str, message: str) -> None:
    _, result = stream(kernel(f"{line}\nreturn x"), {"x": tensor("x", 4)})
    assert any(message in event.message for event in result.events)
    assert result.events[-1].span is not None
    assert not result.complete


def test_a_statement_not_understood_is_opaque_and_the_rest_goes_on() -> None:
    body = """
t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
u = mystery.work(t)
nisa.memset(t, 0.0)
v = u + 1
return x
"""
    text = "import mystery\n" + kernel(body)
    found, result = stream(text, {"x": tensor("x", 4)})
    assert [i.opcode for i in found] == ["opaque", "memset", "opaque"]
    assert "a module outside the reviewed file" in found[0].reason
    assert found[0].view("touched0") is not None
    assert len(result.opaque_statements) == 2
    assert not result.complete


def test_the_value_returning_generation_is_read() -> None:
    text = (
        "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n\n"
        "@nki.jit\ndef k(x):\n    return nl.load(x)\n"
    )
    found, result = stream(text, {"x": tensor("x", 4)})
    assert [instruction.opcode for instruction in found] == ["dma_copy"]
    assert result.complete


def test_nothing_of_the_file_is_run(tmp_path: object) -> None:
    marker = f"{tmp_path}/marker"
    text = (
        "import os\nimport nki\nimport nki.language as nl\n"
        f"open({marker!r}, 'w').write('ran')\nos.system('touch {marker}')\n"
        f"__import__('os').system('touch {marker}')\nX = eval('1')\n"
        + kernel(f"open({marker!r}, 'w')\nexec('1')\nx.__class__.__subclasses__()\nreturn x")
    )
    _, result = stream(text, {"x": tensor("x", 4)})
    from pathlib import Path

    assert not Path(marker).exists()
    assert {event.kind for event in result.events} == {"unsupported"}


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    pass",
        "for i in range(10**9):\n    pass",
        "z = [i for i in range(10**9)]",
        "z = [0]\nwhile True:\n    z = z + z",
        "z = 'a'\nwhile True:\n    z = z + z",
        "z = 1\nwhile True:\n    z = z * 3",
        "t = nl.ndarray((128, 4), dtype=nl.float32)\nwhile True:\n    nisa.memset(t, 0.0)",
        "z = ()\nwhile True:\n    z = (z, z)",
    ],
)
def test_endless_kernels_stop_at_the_budget(body: str) -> None:
    meter = Meter(Budget(steps=200_000))
    result = specialize(
        module(kernel(body + "\nreturn x")), "k", {"x": tensor("x", 4)}, meter=meter
    )
    assert not result.complete
    assert result.events[-1].kind in {"stopped", "error", "unsupported"}
    assert meter.steps <= 200_000 + 16


def test_arguments_must_fit_the_kernel() -> None:
    with pytest.raises(SourceError, match="no parameter z"):
        specialize(module(ROWS), "rows", {"z": 1})
    result = specialize(module(ROWS), "rows", {})
    assert "not given x" in result.events[0].message


def test_plain_arguments_and_defaults() -> None:
    text = kernel(
        "if flag and dims == (2, 3):\n    nisa.memset(nl.ndarray((128, n), dtype=x.dtype), 0)\n"
        "return x",
        "x, flag, dims, n=4",
    )
    args = {"x": TensorSpec((), DType.INT32), "flag": True, "dims": (2, 3)}
    found, result = stream(text, args)
    assert [i.view("dst").sizes for i in found if i.view("dst")] == [(128, 4)]  # type: ignore[union-attr]
    assert result.complete
