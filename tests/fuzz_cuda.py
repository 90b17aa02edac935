"""Mutated CUDA: whatever a file holds, it is read or refused, in bounded time and memory.

    python -m tests.fuzz_cuda --seconds 600 [--seed N]

The seeds are kernels of our own (`tests/cuda/fuzz_seeds`); the mutations are drawn from one
random number generator, so that a seed gives the same inputs everywhere.  Every input goes
through `migrate.api.lifted`, which reads, types and lifts every kernel of the file.  A failure
is any exception but `SourceError`, more than `SLOWEST` seconds of CPU time, or more than
`MEMORY` bytes.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from migrate.api import lifted
from migrate.source import SourceError

SEEDS = Path(__file__).parent / "cuda" / "fuzz_seeds"
SLOWEST = 30.0
MEMORY = 3 * 1024**3
"""Of address space, the libraries with it."""

_WORDS = re.compile(
    rb"[A-Za-z_]\w*|\d[\w.]*|\s+|<<<|>>>|<<|>>|->|::|\+\+|--|[-+*/<>=!&|]=|.", re.DOTALL
)

Mutation = Callable[[list[bytes], random.Random], list[bytes]]


def words(text: bytes) -> list[bytes]:
    return _WORDS.findall(text)


def deleted(text: list[bytes], draw: random.Random) -> list[bytes]:
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(text))
        text = text[:start] + text[start + draw.choice((1, 1, 2, 8)) :] or [b";"]
    return text


def doubled(text: list[bytes], draw: random.Random) -> list[bytes]:
    start = draw.randrange(len(text))
    piece = text[start : start + draw.choice((1, 2, 5, 40))]
    return text[:start] + piece * draw.choice((2, 2, 3, 50)) + text[start:]


def swapped(text: list[bytes], draw: random.Random) -> list[bytes]:
    out = list(text)
    for _ in range(draw.randint(1, 6)):
        first, second = draw.randrange(len(out)), draw.randrange(len(out))
        out[first], out[second] = out[second], out[first]
    return out


def truncated(text: list[bytes], draw: random.Random) -> list[bytes]:
    cut = draw.randrange(1, len(text) + 1)
    return text[:cut] if draw.random() < 0.7 else text[-cut:]


def sprinkled(text: list[bytes], draw: random.Random) -> list[bytes]:
    data = bytearray(b"".join(text))
    for _ in range(draw.randint(1, 12)):
        at = draw.randrange(len(data))
        # Mostly characters that mean something, sometimes any byte.
        data[at] = (
            draw.choice(b"(){}[]<>;,#\"'\\/*&%~?:=\n")
            if draw.random() < 0.8
            else draw.randrange(256)
        )
    return [bytes(data)]


_NESTS = (
    (b"(", b"1", b")"), (b"{", b";", b"}"), (b"a[", b"0", b"]"), (b"if (1) ", b";", b""),
    (b"f(", b"1", b")"), (b"1 ? 1 : ", b"1", b""), (b"-", b"1", b""), (b"*", b"p", b""),
    (b"for (;;) ", b";", b""), (b"(float)", b"1", b""), (b"A<", b"int", b">"), (b"x = ", b"1", b""),
    (b"#if 1\n", b"int a;\n", b"#endif\n"), (b"[&] { return ", b"1", b"; }"), (b"1 + ", b"1", b""),
    (b"struct S { ", b"int a;", b" };"), (b"void f() { ", b";", b"}"), (b"else ", b";", b""),
    (b"switch (1) { case 1: ", b";", b"}"), (b"p->", b"q", b""),
    (b"F(", b"1", b")"), (b"do ", b";", b" while (1);"), (b"1, ", b"1", b""),
    (b"namespace n { ", b"int a;", b"}"), (b"template <class T> ", b"int a;", b""),
)  # fmt: skip


def nested(text: list[bytes], draw: random.Random) -> list[bytes]:
    opening, middle, closing = draw.choice(_NESTS)
    depth = draw.choice((50, 300, 3000, 10_000))
    piece = opening * depth + middle + closing * (depth if draw.random() < 0.8 else 0)
    at = draw.randrange(len(text) + 1)
    return [*text[:at], b" ", piece, b" ", *text[at:]]


def joined(text: list[bytes], draw: random.Random) -> list[bytes]:
    """Part of the same file again, somewhere else."""
    start, end = sorted((draw.randrange(len(text)), draw.randrange(len(text) + 1)))
    at = draw.randrange(len(text) + 1)
    return text[:at] + text[start:end] + text[at:]


def defined(text: list[bytes], draw: random.Random) -> list[bytes]:
    """A word of the file becomes a macro of other words of it."""
    named = sorted({word for word in text if word[:1].isalpha() and len(word) > 1})
    if not named:
        return text
    parameters = draw.choice((b"", b"(x)", b"(x, y)", b"(...)"))
    start = draw.randrange(len(text))
    body = b"".join(text[start : start + draw.randint(0, 12)]).replace(b"\n", b" ")
    extra = draw.choice((b"", b" x", b" # x", b" x ## y", b" __VA_ARGS__"))
    return [b"#define ", draw.choice(named), parameters, b" ", body, extra, b"\n", *text]


MUTATIONS: tuple[Mutation, ...] = (
    deleted, doubled, swapped, truncated, sprinkled, nested, joined, defined,
)  # fmt: skip


def seeds() -> list[list[bytes]]:
    return [words(path.read_bytes()) for path in sorted(SEEDS.glob("*.cu"))]


def inputs(seed: int) -> Iterator[bytes]:
    """Mutated files, without end."""
    draw = random.Random(seed)
    texts = seeds()
    while True:
        text = draw.choice(texts)
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            text = draw.choice(MUTATIONS)(text, draw) or [b";"]
        yield b"".join(text)


def long_lines() -> Iterator[bytes]:
    """One line as large as is read, and one larger."""
    for size in (3_900_000, 20_000_000):
        for piece in (b"x", b"x ", b"(", b"+ 1", b"a<", b'"', b"#", b"/*", b"\\", b"f(x);", b"F(F"):
            yield b"#define F(x) x\n__global__ void k(int x) { " + piece * (size // len(piece))


def check(data: bytes, folder: Path) -> float:
    """Read, type and lift; the seconds it took.  Raises what is a failure."""
    path = folder / "input.cu"
    path.write_bytes(data)
    began = time.process_time()
    try:
        lifted(str(path))
    except SourceError:
        pass
    spent = time.process_time() - began
    if spent > SLOWEST:
        raise TimeoutError(f"took {spent:.1f} s")
    return spent


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz_cuda")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    options.keep.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    failures: Counter[tuple[object, ...]] = Counter()
    count = 0
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for stream in (long_lines(), inputs(options.seed)):
            for data in stream:
                if time.monotonic() > end:
                    break
                count += 1
                try:
                    slowest = max(slowest, check(data, Path(folder)))
                except Exception as error:  # noqa: BLE001
                    place = (
                        type(error).__name__,
                        *traceback.extract_tb(error.__traceback__)[-1][:2],
                    )
                    failures[place] += 1
                    if failures[place] == 1:
                        kept = options.keep / f"{options.seed}-{count}.cu"
                        kept.write_bytes(data)
                        tell(f"{kept}:\n{traceback.format_exc(limit=-3)}")
    for place, times in failures.most_common():
        tell(f"{times} {' '.join(map(str, place))}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tell(
        f"{count} inputs, {failures.total()} failures, slowest {slowest:.1f} s, peak {peak:.0f} MB"
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
