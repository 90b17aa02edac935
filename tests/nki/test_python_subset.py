"""The Python that kernels are built with: each piece prints what Python prints for it."""

from __future__ import annotations

import contextlib
import io
import textwrap

import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.nki.specialize import Specialization, specialize
from tests.nki.kernels import HEADER, module, tensor

PIECES = {
    "dataclass": """
        from dataclasses import dataclass, field, replace, asdict

        @dataclass(frozen=True)
        class Tiling:
            rows: int
            cols: int = 4
            names: tuple = ()

            @property
            def area(self):
                return self.rows * self.cols

            @staticmethod
            def square(n):
                return Tiling(n, n)

            @classmethod
            def wide(cls, n):
                return cls(n, cols=8 * n)

        def show():
            small = Tiling(3)
            print(small, small.area, Tiling.square(5).area, Tiling.wide(2).cols)
            print(replace(small, cols=7).area, small == Tiling(3), small != Tiling(4))
            print(asdict(small)["rows"])
    """,
    "default_factory": """
        from dataclasses import dataclass, field

        @dataclass
        class Plan:
            steps: list = field(default_factory=list)
            size: int = 0

            def __post_init__(self):
                self.size = len(self.steps) * 2

        def show():
            first, second = Plan(), Plan([1, 2])
            first.steps.append(9)
            print(first.steps, Plan().steps, second.size)
    """,
    "inheritance": """
        class Base:
            factor = 2

            def __init__(self, n):
                self.n = n

            def scaled(self):
                return self.n * self.factor

            def __len__(self):
                return self.n

            def __add__(self, other):
                return type(self)(self.n + other.n)

        class Derived(Base):
            factor = 3

            def __init__(self, n, more):
                super().__init__(n)
                self.more = more

            def scaled(self):
                return super().scaled() + self.more

        def show():
            d = Derived(5, 1)
            print(d.scaled(), len(d), (Base(2) + Base(3)).n)
            print(isinstance(d, Base), isinstance(Base(1), Derived), issubclass(Derived, Base))
            print(hasattr(d, "more"), getattr(d, "less", "none"))
    """,
    "enum": """
        from enum import Enum, IntEnum, auto

        class Mode(Enum):
            ROWS = "rows"
            COLS = "cols"

        class Level(IntEnum):
            LOW = 1
            HIGH = auto()

        def show():
            print(Mode.ROWS.value, Mode.COLS.name, Mode("cols") is Mode.COLS)
            print([mode.name for mode in Mode], Mode["ROWS"] == Mode.ROWS)
            print(Level.HIGH > Level.LOW, Level.HIGH + 1)
    """,
    "named tuple": """
        from typing import NamedTuple
        from collections import namedtuple

        class Shape(NamedTuple):
            rows: int
            cols: int = 2

        Pair = namedtuple("Pair", ["a", "b"])

        def show():
            rows, cols = Shape(3)
            print(rows, cols, Shape(1, 4)[1], Pair(1, b=2).a)
            print(Shape(5)._replace(cols=9).cols)
    """,
    "type variables": """
        from typing import Any, Callable, Generic, Optional, Protocol, TypeVar, Union

        T = TypeVar("T", bound="Box")
        Made = Callable[[int], Optional[T]]
        Kind, Rows = type[T], list[int]

        class Box(Generic[T]):
            def __init__(self, held: T):
                self.held: Union[T, None] = held

        class Holder(Protocol[T]):
            def held(self) -> T: ...

        def show():
            print(Box(3).held, Box[int](4).held, Rows((5, 6)))
    """,
    "closures": """
        def counter():
            n = 0
            def step(by=1):
                nonlocal n
                n += by
                return n
            return step

        def apply(f, *args, **words):
            return f(*args, **words)

        def show():
            step = counter()
            step()
            print(apply(step, 4), apply(step, by=2), (lambda a, *, b=3: a + b)(1))
            print([f() for f in [lambda k=k: k * k for k in range(4)]])
            print([f() for f in [lambda: k for k in range(3)]])
    """,
    "generators": """
        def tiles(n, step):
            for start in range(0, n, step):
                yield start, min(step, n - start)

        def nested(n):
            yield -1
            yield from (i * i for i in range(n))

        def show():
            print(list(tiles(10, 4)), sum(size for _, size in tiles(10, 4)))
            print(list(nested(4)))
            it = iter([1, 2, 3])
            print(next(it), next(it), next(it), next(it, "end"))
    """,
    "with": """
        from contextlib import contextmanager, nullcontext

        class Scope:
            def __enter__(self):
                print("in")
                return 7

            def __exit__(self, kind, value, trace):
                print("out", kind is None)
                return False

        @contextmanager
        def named(name):
            print("open", name)
            yield name + "!"
            print("close", name)

        def show():
            with Scope() as n, named("a") as a:
                print(n, a)
            with nullcontext(5) as five:
                print(five)
    """,
    "try": """
        def attempt(f):
            try:
                return f()
            except (KeyError, IndexError):
                return "lookup"
            except ValueError as error:
                return f"value: {error}"
            else:
                return "else"
            finally:
                print("finally")

        def bad():
            raise ValueError("no")

        def show():
            print(attempt(lambda: {}["a"]), attempt(lambda: [][3]), attempt(bad))
            print(attempt(lambda: 5))
            try:
                assert 1 > 2, "less"
            except AssertionError as error:
                print("failed", error)
    """,
    "match": """
        def kind(value):
            match value:
                case 0 | 1:
                    return "bit"
                case int(n) if n > 100:
                    return f"large {n}"
                case [first, *rest]:
                    return f"{first} then {len(rest)}"
                case {"op": op, **others}:
                    return f"{op} {len(others)}"
                case str():
                    return "text"
                case None:
                    return "none"
                case _:
                    return "other"

        def show():
            for value in (1, 101, 50, [4, 5, 6], {"op": "add", "n": 1}, "x", None, 2.5):
                print(kind(value))
    """,
    "comprehensions": """
        def show():
            print([i * j for i in range(3) for j in range(i) if (i + j) % 2])
            print({k: v for k, v in zip("abc", range(3))}, {i % 3 for i in range(7)})
            print([[r * 2 + c for c in range(2)] for r in range(2)])
            print(any(i > 3 for i in range(5)), all(i > 3 for i in range(5)))
            print([n for i in range(5) if (n := i * i) > 3])
    """,
    "formatting": """
        def show():
            n, r, name = 12, 2.0 / 3.0, "tile"
            print(f"{n:>5}|{n:04d}|{r:.3f}|{name!r}|{n=}|{n:x}|{name:<6}|{1000000:,}")
            print("%s-%d" % (name, n), "{}/{b}".format(1, b=2))
    """,
    "strings": """
        def show():
            text = "b p, q"
            print(text.split(), text.upper(), text.replace(" ", ""), "-".join(["a", "b"]))
            print(text.startswith("b"), "p" in text, text[::-1], text.find("q"), " x ".strip())
            print("ab" * 2, len(text), "a,b,c".split(",", 1), "A".lower() == "a")
    """,
    "lists and dictionaries": """
        def show():
            items = [3, 1, 2]
            items.extend([5, 4]); items.insert(0, 9); items.remove(1)
            print(items, items.pop(), items.index(5), items.count(9), sorted(items, reverse=True))
            items.sort(key=lambda n: -n)
            items[1:3] = [0]
            del items[0]
            print(items, items[-1], items[::2])
            table = {"a": 1}
            table.update(b=2); table.setdefault("c", []).append(7)
            print(table, table.get("z", 0), list(table.items()), "a" in table, table.pop("a"))
            print({**table, "d": 4}, len(table), list(reversed([1, 2, 3])))
            first, *middle, last = range(5)
            print(first, middle, last)
    """,
    "sets": """
        def show():
            a, b = {1, 2, 3}, {2, 3, 4}
            print(sorted(a & b), sorted(a | b), sorted(a - b), sorted(a ^ b), a <= b, 2 in a)
            a.add(9); a.discard(1)
            print(sorted(a), len(frozenset([1, 1, 2])))
    """,
    "loops": """
        def show():
            n = 0
            while True:
                n += 1
                if n % 2: continue
                if n > 6: break
            else:
                print("never")
            for i in range(3):
                pass
            else:
                print("done", i, n)
            for i, (a, b) in enumerate(zip([1, 2], [3, 4]), start=1):
                print(i, a, b)
    """,
    "functools and itertools": """
        import functools
        import itertools
        import math
        from functools import partial, reduce
        from itertools import product

        @functools.lru_cache(maxsize=None)
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        def show():
            print(partial(pow, 2)(5), reduce(lambda a, b: a * b, [1, 2, 3, 4]), fib(10))
            print(list(product(range(2), "ab")), list(itertools.chain([1], [2, 3])))
            print(list(itertools.accumulate([1, 2, 3])), math.prod([2, 3, 4]), math.gcd(12, 18))
            print(math.ceil(7 / 2), math.floor(-0.5), math.sqrt(16.0), math.log2(8))
            print(divmod(17, 5), -7 // 2, -7 % 3, 2**10, 7 >> 1, 5 & 3, 5 | 3, 5 ^ 3, ~5)
    """,
    "conditions": """
        def show():
            n = 5
            print(1 < n <= 5, n if n > 3 else 0, not n, n and 0, 0 or "x", n is not None)
            print(bool([]), int("12"), float("1.5"), str(3), abs(-2), round(2.5), round(3.5))
            print(max(3, 7), min([4, 2]), max("abc", key=ord), sum([1, 2], 10), tuple([1]))
    """,
    "deleting and global": """
        total = 1

        def add(n):
            global total
            total += n

        def show():
            add(4)
            value = {"a": 1, "b": 2}
            del value["a"]
            print(total, value)
    """,
}


def printed(text: str, budget: Budget | None = None) -> Specialization:
    """A module with `show`, which a kernel calls."""
    source = HEADER + textwrap.dedent(text) + "\n@nki.jit\ndef k(x):\n    show()\n    return x\n"
    meter = Meter(budget, "reading a kernel") if budget is not None else None
    return specialize(module(source), "k", {"x": tensor("x", 4, 4)}, meter=meter)


@pytest.mark.parametrize("name", PIECES)
def test_pieces_print_what_python_prints(name: str) -> None:
    found = printed(PIECES[name])
    lines = [event.message for event in found.events if event.kind == "print"]
    assert [event for event in found.events if event.kind != "print"] == []
    assert found.complete
    namespace: dict[str, object] = {"__name__": "builtins"}
    wanted = io.StringIO()
    with contextlib.redirect_stdout(wanted):
        text = textwrap.dedent(PIECES[name]) + "\nshow()\n"
        code = compile(text, "piece", "exec", flags=0, dont_inherit=True)
        exec(code, namespace)  # noqa: S102  only what stands above
    assert "\n".join(lines) == wanted.getvalue().rstrip("\n")


HOSTILE = {
    "endless loop": "while True:\n    pass",
    "endless counting": "n = 0\nwhile n >= 0:\n    n += 1",
    "a long list": "a = [0] * 10**9",
    "a growing list": "a = [1]\nwhile True:\n    a = a + a",
    "a long string": "a = 'x' * 10**10",
    "a growing string": "a = 'x'\nwhile True:\n    a += a",
    "a wide format": "a = f'{1:>1000000000}'",
    "a large number": "a = 9 ** 9 ** 9",
    "a large shift": "a = 1 << 10**10",
    "a long range as a list": "a = list(range(10**10))",
    "many lists": "a = {i: [0] * 10**4 for i in range(10**4)}",
    "many texts": "a = []\nfor i in range(10**5):\n    t = 'x'\n    t *= 10**4\n    a.append(t)",
    "a list that grows under its loop": "a = [1]\nfor i in a:\n    a.append(i)",
    "a part of a list with step zero": "a = [1, 2]\na[::0] = [3]",
    "a deep call": "def f(n):\n    return f(n + 1)\nf(0)",
    "a deep list": "a = []\nwhile True:\n    a = [a]",
    "an endless generator": "def g():\n    while True:\n        yield 1\nlist(g())",
    "an endless count": "import itertools\nlist(itertools.count())",
    "products of products": (
        "import itertools\nlist(itertools.product(*[range(100) for _ in range(9)]))"
    ),
    "a list that holds itself": "a = []\na.append(a)\nprint(a)\na == [a]",
    "classes of classes": "().__class__.__mro__[1].__subclasses__()",
    "a hidden attribute": "getattr((), '__class__').__base__",
    "the globals of a function": "def f(): pass\nf.__globals__['os']",
    "an import by name": "__import__('os').system('true')",
    "a file": "open('/etc/hostname').read()",
    "text as code": "eval('1 + 1')",
    "statements as text": "exec('a = 1')",
    "builtins": "__builtins__['open']",
    "another process": "import subprocess\nsubprocess.run(['true'])",
    "allocations": "for i in range(10**9):\n    nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)",
    "a vast tensor": "nl.ndarray((128, 10**18), dtype=nl.float32, buffer=nl.sbuf)",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_kernels_end_within_their_budget_and_say_why(name: str) -> None:
    body = textwrap.indent(HOSTILE[name], "    ")
    budget = Budget(steps=200_000, bytes=64 * 1024**2, seconds=60)
    try:
        found = printed(f"def show():\n{body}\n", budget)
    except Exhausted as error:
        assert "reading a kernel" in str(error)  # noqa: PT017
        return
    said = [event for event in found.events if event.kind != "print"]
    assert said or found.problems
    assert not found.complete or found.problems
    assert all(event.message for event in said)


def test_range_of_the_language_is_range() -> None:
    found = printed("def show():\n    for i in nl.range(1, 6, 2):\n        print(i)\n")
    assert [event.message for event in found.events] == ["1", "3", "5"]
