"""Arguments for an NKI kernel that nothing is compared with.

What its own text tells is proposed, the kernel is specialised with it, and what it then demands
(an assertion that failed, an access beyond a tensor, operands that do not fit) changes the
proposal, until the kernel takes it.  `infer` is the way in.
"""

from __future__ import annotations

from migrate.pipeline.nki_alone.search import InferredArguments, infer

__all__ = ["InferredArguments", "infer"]
