"""Values that classes of reviewed code make: classes, their instances, bound methods, sets.

Nothing here is a Python class of its own: a class is a table of names, an instance another.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from migrate.nki.values import Unknown

if TYPE_CHECKING:
    from migrate.nki.frames import Code, Frame, Run

Kind: TypeAlias = Literal["plain", "enum", "exception", "tuple"]


class _Missing:
    __slots__ = ()


MISSING = _Missing()
"""No default."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a dataclass or named tuple, in the order of their definition.

    `annotated` is false for a plain assignment in a class of NKI's own parser, which takes it
    as a keyword too.
    """

    described: ClassVar[str] = "a dataclass field"
    name: str
    default: object = MISSING
    factory: object = MISSING
    init: bool = True
    keyword_only: bool = False
    shown: bool = True
    compared: bool = True
    annotated: bool = True

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is MISSING


@dataclass(slots=True, eq=False)
class Class:
    """A class: its names, and the classes that they are looked up in (itself first).

    `unknown` is a base that was not understood: what such a class lacks may come from there.
    `fields` are those of a dataclass or named tuple (`own_fields`: not only inherited), `members`
    those of an enum, `mixin` the type whose value such a member also is (`IntEnum`).  `lenient`
    classes are those that NKI's parser makes (`NKIObject`): fields may be given, and left out,
    freely.
    """

    name: str
    bases: tuple[Class, ...]
    names: dict[str, object]
    kind: Kind = "plain"
    run: Run | None = None
    node: ast.ClassDef | None = None
    unknown: Unknown | None = None
    fields: tuple[Field, ...] | None = None
    own_fields: bool = False
    frozen: bool = False
    ordered: bool = False
    compared: bool = True
    lenient: bool = False
    mixin: str = ""
    members: dict[str, Instance] = field(default_factory=dict)
    mro: tuple[Class, ...] = ()

    def find(self, name: str, after: Class | None = None) -> tuple[object, Class] | None:
        """What a name of the class stands for, and the class that has it.

        With `after`, only the classes behind that one are looked at (`super`).
        """
        looking = after is None
        for holder in self.mro:
            if looking and name in holder.names:
                return holder.names[name], holder
            looking = looking or holder is after
        return None

    def derives(self, other: Class) -> bool:
        return other in self.mro

    @property
    def stranger(self) -> Unknown | None:
        """A base that was not understood, of this class or one it derives from."""
        for holder in self.mro:
            if holder.unknown is not None:
                return holder.unknown
        return None


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of reviewed code."""

    described: ClassVar[str] = "an object"
    cls: Class
    names: dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A method with what it was looked up on."""

    described: ClassVar[str] = "a method"
    function: object
    receiver: object


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """`staticmethod(function)`."""

    described: ClassVar[str] = "a static method"
    function: object


@dataclass(frozen=True, slots=True, eq=False)
class ClassMethod:
    """`classmethod(function)`."""

    described: ClassVar[str] = "a class method"
    function: object


@dataclass(frozen=True, slots=True, eq=False)
class Property:
    """`property(getter, setter)`; a cached one keeps what it computed once."""

    described: ClassVar[str] = "a property"
    getter: object
    setter: object = None
    cached: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """`super()`: the names of an object behind one of its classes."""

    described: ClassVar[str] = "super()"
    after: Class
    receiver: Instance | Class


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """`functools.partial(function, *args, **keywords)`."""

    described: ClassVar[str] = "a function with some arguments given"
    function: object
    args: tuple[object, ...]
    keywords: dict[str, object]


@dataclass(slots=True, eq=False)
class Set:
    """A set: what its plain keys stand for, in the order in which they came."""

    described: ClassVar[str] = "a set"
    entries: dict[object, object]
    frozen: bool = False


@dataclass(slots=True, eq=False)
class Generator:
    """A call of a function with `yield`; its body runs when something goes through it."""

    described: ClassVar[str] = "a generator"
    code: Code
    frame: Frame
    started: bool = False
    rest: list[object] | None = None
    """What is left of a generator that is asked for one thing at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Managed:
    """What a function under `contextlib.contextmanager` returns."""

    described: ClassVar[str] = "a context manager"
    generator: Generator


@dataclass(frozen=True, slots=True, eq=False)
class Without:
    """`contextlib.nullcontext(value)`: entering it gives the value."""

    described: ClassVar[str] = "a context manager"
    value: object


@dataclass(slots=True, eq=False)
class Cursor:
    """`iter(values)`: things one at a time."""

    described: ClassVar[str] = "an iterator"
    items: list[object]
    position: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Inert:
    """Something that has no effect on a kernel (a logger): its methods do nothing."""

    described: ClassVar[str] = "an object without effect"
    name: str


@dataclass(frozen=True, slots=True)
class Keyed:
    """A dictionary key that is equal where the plain `key` is, and stands for `value`."""

    key: object
    value: object = field(compare=False, hash=False)

    def __eq__(self, other: object) -> bool:
        return self.key == (other.key if isinstance(other, Keyed) else other)

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(slots=True, eq=False)
class Deferred:
    """A name of another module, which is read when it is first used."""

    described: ClassVar[str] = "a name of another module"
    text: str
    read: Callable[[], object]
    made: object = MISSING

    def get(self) -> object:
        if self.made is MISSING:
            self.made = self.read()
        return self.made


OBJECTS = (Class, Instance, Bound, Super, Property, Set, Generator, Inert, Partial, Cursor, Static)
"""Values whose attributes `classes` knows."""


def definition(node: ast.AST) -> bool:
    """Whether a node opens a scope of its own."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)


def linearised(cls: Class) -> tuple[Class, ...] | None:
    """The order in which names are looked up (C3), `None` where there is none."""
    queues = [list(base.mro) for base in cls.bases] + [list(cls.bases)]
    found = [cls]
    while queues := [queue for queue in queues if queue]:
        for queue in queues:
            head = queue[0]
            if not any(head in other[1:] for other in queues):
                break
        else:
            return None
        found.append(head)
        queues = [queue[1:] if queue[0] is head else queue for queue in queues]
    return tuple(found)
