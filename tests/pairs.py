"""Small pairs as text: a CUDA kernel, an NKI kernel and a case, in a few words each."""

from __future__ import annotations

from functools import partial
from textwrap import dedent, indent

from migrate.align.relation import OutputRelation, Relation
from migrate.budget import Budget, Meter
from migrate.pipeline.kernels import Pair, pair_of_text
from migrate.pipeline.reading import Positions, read_positions
from migrate.verify.inputs import make

XY = "const float* x, const float* y, float* out, int n"


def cuda(body: str, parameters: str = XY, *, guarded: bool = True) -> str:
    """A kernel with a thread `i` an element; `guarded` keeps it below n."""
    inner = dedent(body).strip()
    if guarded:
        inner = f"if (i < n) {{\n{indent(inner, '  ')}\n}}"
    inner = indent("int i = blockIdx.x * blockDim.x + threadIdx.x;\n" + inner, "  ")
    return f"__global__ void k({parameters}) {{\n{inner}\n}}\n"


def nki(body: str, parameters: str = "x, y") -> str:
    """A kernel with the given body."""
    head = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n"
    return f"{head}@nki.jit\ndef k({parameters}):\n{indent(dedent(body).strip(), '    ')}\n"


def tiles(compute: str, *, into: str = "out", parameters: str = "x, y") -> str:
    """Tiles of 512 elements: `a` and `b` are x and y, and `a` is what is stored."""
    allocated = "out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)\n"
    return nki(
        f"n = x.shape[0]\n{allocated if into == 'out' else ''}"
        + dedent(
            """\
            for start in range(0, n, 512):
                size = min(512, n - start)
                a = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
                b = nl.ndarray((1, size), dtype=y.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=a, src=x[start : start + size].reshape((1, size)))
                nisa.dma_copy(dst=b, src=y[start : start + size].reshape((1, size)))
            """
        )
        + indent(dedent(compute).strip(), "    ")
        + f"\n    nisa.dma_copy(dst={into}[start : start + size].reshape((1, size)), src=a)"
        + f"\nreturn {into}",
        parameters,
    )


def combined(operator: str) -> str:
    """The NKI kernel that applies an operator of `nl` to x and y."""
    return tiles(f"nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.{operator})")


def tensor(name: str, *, role: str = "in", dtype: str = "float32", **more: object) -> str:
    """A tensor of n elements, called the same on both sides; `out` is result 0."""
    keys: dict[str, object] = {"name": name, "shape": ["n"], "dtype": dtype, "role": role}
    keys["cuda"] = name
    if role == "out" and "nki" not in more:
        keys["nki_out"] = 0
    elif role != "out":
        keys["nki"] = name
    lines = [f"{key} = {_toml(value)}" for key, value in {**keys, **more}.items()]
    return "[[tensor]]\n" + "\n".join(lines) + "\n"


def case(*tables: str, n: object = (100, 700)) -> str:
    """A case of 1-d tensors; without tables, x and y in and out out."""
    tensors = tables or (tensor("x"), tensor("y"), tensor("out", role="out"))
    sizes = n if isinstance(n, int) else list(n)  # type: ignore[call-overload]
    return (
        '[cuda]\ngrid = ["ceil_div(n, 128)"]\nblock = [128]\n'
        f"[sizes]\nn = {sizes}\n"
        + "".join(tensors)
        + '[[scalar]]\nname = "n"\nvalue = "n"\ndtype = "int32"\ncuda = "n"\n'
    )


def _toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


ADD = cuda("out[i] = x[i] + y[i];")
ADD_NKI = combined("add")


def read(left: str, right: str, stated: str | None = None) -> tuple[Pair, Positions]:
    """Both kernels read and related at every position of a case."""
    pair = pair_of_text(left, right, stated or case())
    inputs = partial(make, folder=None)
    positions = read_positions(pair, inputs, Meter(Budget(), "reading"), lambda _: None)
    return pair, positions


def relations(left: str, right: str, stated: str | None = None) -> tuple[Relation, ...]:
    """The relations of two kernels."""
    return read(left, right, stated)[1].relations


def outputs(relation: Relation) -> dict[str, OutputRelation]:
    return {output.name: output for output in relation.outputs}
