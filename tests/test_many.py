"""Many comparisons in one process: nothing piles up, and none disturbs another."""

import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

from migrate import compare_text
from tests import pairs

CASE = pairs.case(n=[3, 700])
OPERATORS = {"add": "+", "subtract": "-", "multiply": "*"}


def pair(number):
    """A pair of its own: names and numbers differ, and some migrations are wrong."""
    operator, sign = list(OPERATORS.items())[number % 3]
    wrong = "add" if number % 5 == 0 else operator
    cuda = pairs.cuda(f"float t{number} = x[i] {sign} y[i];\nout[i] = t{number} + {number}.0f;")
    nki = pairs.tiles(
        f"nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.{wrong})\n"
        f"nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0={number}.0)"
    )
    return cuda, nki


def compared(number):
    return compare_text(*pair(number), case=CASE, run="never").to_json()


def test_fifty_comparisons_leave_nothing_behind():
    def held():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    # Tables and caches fill with the first.
    for number in range(10):
        compared(number)
    tracemalloc.start()
    try:
        for number in range(10, 15):
            compared(number)
        before = held()
        for number in range(15, 60):
            compared(number)
        after = held()
    finally:
        tracemalloc.stop()
    # One result alone is more than what 45 may leave in bounded caches.
    assert after - before < 45 * len(compared(15))


def test_threads_do_not_disturb_each_other():
    numbers = range(12)
    alone = [compared(number) for number in numbers]
    assert len(set(alone)) == len(alone)
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(compared, numbers))
    assert together == alone
