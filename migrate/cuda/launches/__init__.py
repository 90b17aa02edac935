"""Kernel launches in host code: geometry and arguments as expressions over host names.

Host code is read for evidence, never run.  Locals are followed through what is assigned to
them where control flow is clear, helpers of the file are read inline, and what is left open
stays as a name: `evaluate` and `index` give an expression its value or its index expression.
"""

from migrate.cuda.launches.deduce import deduced
from migrate.cuda.launches.find import Launch, launches
from migrate.cuda.launches.host import (
    Constant,
    HostExpression,
    NotRead,
    Operation,
    Symbol,
    evaluate,
    index,
    readable,
    settled,
)
from migrate.cuda.launches.terms import Triple

__all__ = [
    "Constant",
    "HostExpression",
    "Launch",
    "NotRead",
    "Operation",
    "Symbol",
    "Triple",
    "deduced",
    "evaluate",
    "index",
    "launches",
    "readable",
    "settled",
]
