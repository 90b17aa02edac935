"""Every rule, in one table.  Ids are never reused; the order is that of the documentation."""

from __future__ import annotations

from typing import Final

from migrate.rules import (
    api401,
    api402,
    api403,
    api404,
    api405,
    cuda501,
    cuda502,
    cuda503,
    cuda504,
    cuda505,
    cuda506,
    hw201,
    hw202,
    hw203,
    hw204,
    hw205,
    map101,
    map102,
    map103,
    map104,
    map105,
    map106,
    map107,
    map108,
    map109,
    map110,
    map111,
    map112,
    map113,
    num301,
    num302,
    num303,
    num304,
    num305,
    perf601,
    perf602,
    perf603,
    perf604,
    perf605,
    perf606,
    perf607,
    perf608,
)
from migrate.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    # Mapping: the NKI kernel computes something else.
    map101.RULE,
    map102.RULE,
    map103.RULE,
    map104.RULE,
    map105.RULE,
    map106.RULE,
    map107.RULE,
    map108.RULE,
    map109.RULE,
    map110.RULE,
    map111.RULE,
    map112.RULE,
    map113.RULE,
    # Hardware: it cannot run, or touches what is not there.
    hw201.RULE,
    hw202.RULE,
    hw203.RULE,
    hw204.RULE,
    hw205.RULE,
    # Numerics: it computes the same, less exactly.
    num301.RULE,
    num302.RULE,
    num303.RULE,
    num304.RULE,
    num305.RULE,
    # Performance: it computes the same, slower than it need be.
    perf601.RULE,
    perf602.RULE,
    perf603.RULE,
    perf604.RULE,
    perf605.RULE,
    perf606.RULE,
    perf607.RULE,
    perf608.RULE,
    # API: it does not compile.
    api401.RULE,
    api402.RULE,
    api403.RULE,
    api404.RULE,
    api405.RULE,
    # CUDA: the reference itself is at fault.
    cuda501.RULE,
    cuda502.RULE,
    cuda503.RULE,
    cuda504.RULE,
    cuda505.RULE,
    cuda506.RULE,
)

BY_ID: Final[dict[str, Rule]] = {rule.id: rule for rule in RULES}
