"""Shapes from accesses, and launches from kernels."""

from __future__ import annotations

import pytest

from migrate.cuda.check import function
from migrate.cuda.lift import lift
from migrate.ir.index import Index, ceil_div
from migrate.pipeline.infer_extents import Open, Shape, factors, shapes
from migrate.pipeline.infer_facts import cleared, upper
from migrate.pipeline.infer_geometry import geometry
from migrate.pipeline.kernels import parse_cuda
from migrate.source import Source, SourceError

N, ROWS, COLS = Index.size("n"), Index.size("rows"), Index.size("cols")
I = Index.axis("i")  # noqa: E741 -- as in the formulas


def read(
    body: str,
    parameters: str = "int n",
    *,
    grid: tuple[Index | int, ...] = (ceil_div(N, 256),),
    block: tuple[int, ...] = (256,),
) -> dict[str, Shape | Open]:
    text = f"__global__ void k(const float* x, float* y, {parameters}) {{ {body} }}"
    program = parse_cuda(Source.of(text, "k.cu"))
    return shapes(lift(program, "k", {}, grid, block))


GLOBAL = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


@pytest.mark.parametrize(
    ("body", "parameters", "x", "y"),
    [
        (f"{GLOBAL} if (i < n) y[i] = x[i];", "int n", "n", "n"),
        (f"{GLOBAL} if (i >= n) return; y[2 * i + 1] = x[2 * i];", "int n", "2*n", "2*n"),
        (
            (
                "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;"
                " i += blockDim.x * gridDim.x) y[i] = x[i];"
            ),
            "int n",
            "n",
            "n",
        ),
        (
            (
                f"{GLOBAL} if (i < rows * cols) {{ int r = i / cols, c = i % cols;"
                " y[c * rows + r] = x[r * cols + c]; }"
            ),
            "int rows, int cols",
            "cols*rows",
            "cols, rows",
        ),
        (
            f"{GLOBAL} if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i] + x[i + 1];",
            "int n",
            "n",
            "n",
        ),
        (f"{GLOBAL} if (i < n) y[n - 1 - i] = x[i];", "int n", "n", "n"),
        (
            (
                f"{GLOBAL} int r = i / 32, lane = i % 32; if (r >= n) return;"
                " for (int c = lane; c < cols; c += 32) y[r * cols + c] = x[r * cols + c];"
            ),
            "int n, int cols",
            "n, cols",
            "n, cols",
        ),
        (
            (
                "int b = blockIdx.x; for (int r = 0; r < rows; ++r)"
                " for (int c = threadIdx.x; c < cols; c += 256)"
                " y[(b * rows + r) * cols + c] = x[(b * rows + r) * cols + c];"
            ),
            "int n, int rows, int cols",
            "(n + 255) // 256, rows, cols",
            "(n + 255) // 256, rows, cols",
        ),
        (
            (
                "int r = blockIdx.x, shorter = cols - 2;"
                " for (int c = threadIdx.x; c < shorter; c += 256)"
                " y[r * shorter + c] = x[r * cols + c] + x[r * cols + c + 2];"
            ),
            "int n, int cols",
            "(n + 255) // 256, cols",
            "(n + 255) // 256, cols - 2",
        ),
        (
            (
                "int r = blockIdx.x; for (int c = threadIdx.x; c < cols; c += 256)"
                " y[r * (cols + 1) + c + 1] = x[r * cols + c];"
            ),
            "int n, int cols",
            "(n + 255) // 256, cols",
            "(n + 255) // 256, cols + 1",
        ),
        (f"{GLOBAL} if (i < n) y[i * n + i] = x[i];", "int n", "n", "n, n"),
    ],
)
def test_shapes(body: str, parameters: str, x: str, y: str) -> None:
    grid = (ceil_div(N if "int n" in parameters else ROWS * COLS, 256),)
    found = read(body, parameters, grid=grid)
    shown = {
        name: ", ".join(map(str, shape.extents)) if isinstance(shape, Shape) else shape.reason
        for name, shape in found.items()
    }
    assert shown == {"x": x, "y": y}


def test_rows_of_constant_length() -> None:
    found = read(
        "int r = blockIdx.x * 4 + threadIdx.y; if (r < n)"
        " y[r * 64 + threadIdx.x] = x[r * 64 + threadIdx.x];",
        grid=(ceil_div(N, 4),),
        block=(64, 4),
    )
    assert found["x"] == Shape((N, Index.of(64)))


def test_rows_of_constant_length_in_rows_of_a_size() -> None:
    found = read(
        "int h = blockIdx.y, r = blockIdx.x * 4 + threadIdx.y; if (r < rows)"
        " y[(h * rows + r) * 64 + threadIdx.x] = x[h * rows * 64 + r * 64 + threadIdx.x];",
        "int rows",
        grid=(ceil_div(ROWS, 4), N),
        block=(64, 4),
    )
    assert found == {name: Shape((N, ROWS, Index.of(64))) for name in "xy"}


@pytest.mark.parametrize(
    ("body", "multiple"),
    [
        (f"{GLOBAL} y[i] = x[i];", 256),
        (
            (
                f"{GLOBAL} if (i < n / 4) {{ float4 v = reinterpret_cast<const float4*>(x)[i];"
                " reinterpret_cast<float4*>(y)[i] = v; }"
            ),
            4,
        ),
    ],
)
def test_lengths_that_must_be_whole(body: str, multiple: int) -> None:
    shape = Shape((N,), ((N, multiple),))
    assert read(body) == {"x": shape, "y": shape}


def test_what_data_decides_is_open() -> None:
    found = read(f"{GLOBAL} if (i < n) y[i] = x[(int)x[i]];")
    assert isinstance(found["x"], Open)
    assert "data decides" in found["x"].reason
    assert found["y"] == Shape((N,))


def test_bounds_take_as_few_facts_as_possible() -> None:
    assert upper(3 * I + 2, (N - 1 - I,)) == 3 * N - 1
    assert upper(-I, (I,)) == Index.of(0)
    assert upper(N * I + Index.axis("j"), (N - 1 - Index.axis("j"), ROWS - 1 - I)) == ROWS * N - 1
    assert upper(I, (N - 1 - Index.axis("j"),)) is None


def test_a_loop_extent_as_a_fact() -> None:
    lane = Index.axis("lane")
    extent = (COLS + 255 * lane + 255) // 256 - lane
    (fact,) = cleared((extent - 1 - I,))
    assert fact == COLS - 1 - lane - 256 * I


def test_factors() -> None:
    assert factors(ROWS * COLS) == (COLS, ROWS)
    assert factors(4 * N) == (Index.of(4), N)
    assert factors(N + 1) == (N + 1,)


# -- launches ---------------------------------------------------------------------------


def launched(body: str, parameters: str, before: str = "") -> tuple[list[str], list[str]]:
    text = f"__global__ void {before} k(const float* x, float* y, {parameters}) {{ {body} }}"
    program = parse_cuda(Source.of(text, "k.cu"))
    grid = tuple(Index.size(f"gridDim.{axis}") for axis in "xyz")
    block = tuple(Index.size(f"blockDim.{axis}") for axis in "xyz")
    kernel = lift(program, "k", {}, grid, block)
    found = geometry(kernel, None, None, function(program, "k").launch_bounds)
    return [str(part) for part in found.grid], [str(part) for part in found.block]


@pytest.mark.parametrize(
    ("body", "parameters", "grid", "block"),
    [
        (f"{GLOBAL} if (i < n) y[i] = x[i];", "int n", "(n + 255) // 256", "256"),
        (
            "int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = x[i];",
            "int n",
            "(n + 63) // 64",
            "64",
        ),
        (
            (
                "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;"
                " i += blockDim.x * gridDim.x) y[i] = x[i];"
            ),
            "int n",
            "4",
            "256",
        ),
        (
            "for (int c = threadIdx.x; c < n; c += 128) y[blockIdx.x * n + c] = x[c];",
            "int n",
            "grid_x",
            "128",
        ),
        (
            (
                "__shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();"
                " for (int c = threadIdx.x; c < n; c += blockDim.x) y[c] = s[threadIdx.x];"
            ),
            "int n",
            "1",
            "64",
        ),
    ],
)
def test_geometry(body: str, parameters: str, grid: str, block: str) -> None:
    assert launched(body, parameters) == ([grid, "1", "1"], [block, "1", "1"])


def test_launch_bounds_tell_the_block() -> None:
    found = launched("y[threadIdx.x] = x[threadIdx.x];", "int n", "__launch_bounds__(96)")
    assert found == (["1", "1", "1"], ["96", "1", "1"])


def test_two_dimensions() -> None:
    body = (
        "int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (r < rows && c < cols) y[r * cols + c] = x[r * cols + c];"
    )
    grid, block = launched(body, "int rows, int cols")
    assert grid == ["(cols + 15) // 16", "(rows + 15) // 16", "1"]
    assert block == ["16", "16", "1"]


def test_a_block_that_nothing_tells() -> None:
    with pytest.raises(SourceError, match="how many threads a block has along x"):
        launched("y[threadIdx.x] = x[threadIdx.x];", "int n")
