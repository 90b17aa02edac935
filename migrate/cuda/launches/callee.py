"""Which kernel a launch names: through casts, pointers, template arguments and aliases."""

from __future__ import annotations

from migrate.cuda.launches.names import Names
from migrate.cuda.launches.text import Words

MAX_CALLEE = 200
"""Words of a callee's name with its template arguments."""

_CAST_AHEAD = frozenset({"reinterpret_cast", "static_cast", "HIP_KERNEL_NAME", "KERNEL_NAME"})


def kernel_of(
    part: tuple[int, int], names: Names, depth: int = 0
) -> tuple[str, tuple[int, int]] | None:
    """The name of the function that words name, and its template arguments."""
    text = names.text
    start, end = part
    if depth > 8:
        return None
    while start < end and text.words[start] in ("&", "*", "::"):
        start += 1
    if start >= end:
        return None
    if text.words[start] == "(":
        close = text.closing(start, end)
        if close == end - 1:
            return kernel_of((start + 1, close), names, depth + 1)
        return kernel_of((close + 1, end), names, depth + 1)  # a cast
    if text.words[start] in _CAST_AHEAD and text.words[end - 1] == ")":
        return kernel_of((text.partner[end - 1] + 1, end - 1), names, depth + 1)
    at = start
    last = start
    template = (0, 0)
    while at < end:
        if text.kinds[at] == "name":
            last = at
            at += 1
        elif text.words[at] == "<":
            closed = text.angles(at, end)
            template = (at + 1, closed - 1)
            at = closed
        elif text.words[at] in ("::", ".", "->"):
            template = (0, 0)
            at += 1
        else:
            break
    name = text.words[last]
    if last == start and template == (0, 0):
        found = _pointed(name, start, names, depth)
        if found is not None:
            return found
    return name, template


def _pointed(name: str, at: int, names: Names, depth: int) -> tuple[str, tuple[int, int]] | None:
    """The kernel that a function pointer of the host code holds."""
    text = names.text
    declared = names.lookup(name, at)
    if declared is None:
        return None
    if declared.form == "=" and not names.events(declared):
        return kernel_of((declared.start, declared.end), names, depth + 1)
    # CUfunction: cuModuleGetFunction(&f, module, "name")
    for place in text.places(name):
        if (
            place > 2
            and text.words[place - 1] == "&"
            and text.words[place - 3].endswith("ModuleGetFunction")
        ):
            parts = text.split(place - 1, text.closing(place - 2, len(text.words)))
            if len(parts) == 3 and text.kinds[parts[2][0]] == "string":
                return text.words[parts[2][0]].strip('"'), (0, 0)
    return None


def alias(part: tuple[int, int], names: Names) -> str:
    """A template argument, through the `using` of the host function."""
    text = names.text
    shown = text.text(*part)
    if part[1] != part[0] + 1 or text.kinds[part[0]] != "name":
        return shown
    return names.alias(shown, part[0]) or shown


def beginning(mark: int, text: Words) -> int | None:
    """Where the expression in front of `<<<` begins."""
    at = mark - 1
    if at >= 0 and text.words[at] in (">", ">>"):
        level = 0
        while at >= 0 and mark - at < MAX_CALLEE:
            word = text.words[at]
            if word in (")", "]", "}") and text.partner[at] >= 0:
                at = text.partner[at]
            elif word in (">", ">>"):
                level += len(word)
            elif word == "<":
                level -= 1
                if level <= 0:
                    break
            elif word == ";":
                return None
            at -= 1
        at -= 1
    if at >= 0 and text.words[at] in (")", "]") and text.partner[at] >= 0:
        return text.partner[at] - (text.words[at] == "]")
    if at < 0 or text.kinds[at] != "name":
        return None
    while at >= 2 and text.words[at - 1] in ("::", ".", "->") and text.kinds[at - 2] == "name":
        at -= 2
    return at - (at > 0 and text.words[at - 1] == "::")
