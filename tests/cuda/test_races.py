"""What a run shows of barriers, shuffles and shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.cuda.execute import execute
from migrate.cuda.parse import parse
from migrate.cuda.runtime import Event
from migrate.numerics.rounded import Rounded
from migrate.source import Source


def events(body: str, threads: int = 64, declared: str = "__shared__ float s[128];") -> list[Event]:
    text = (
        "__global__ void k(const float* x, float* y, int n) {\n"
        f"  int t = threadIdx.x; {declared}\n  {body}\n}}"
    )
    arrays = {"x": np.ones(128, np.float32), "y": np.zeros(128, np.float32), "n": 64}
    program = parse(Source.of(text, "k.cu"))
    made = execute(program, "k", arrays, (2, 1, 1), (threads, 1, 1), domain=Rounded())
    return [event for event in made.events if event.kind in WANTED]


WANTED = {"shared-race", "excluded-lane", "divergent-barrier", "inactive-shuffle-source"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("s[t] = x[t]; y[t] = s[63 - t];", "shared-race"),
        ("s[t] = x[t]; __syncwarp(); y[t] = s[63 - t];", "shared-race"),
        # The tree's last barrier is missing.
        (
            (
                "s[t] = x[t]; __syncthreads();"
                " for (int d = 32; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; }"
                " y[t] = s[0];"
            ),
            "shared-race",
        ),
        # The next tile is loaded while others still read this one.
        (
            (
                "float sum = 0; for (int i = 0; i < 2; ++i) { s[t] = x[t]; __syncthreads();"
                " sum += s[63 - t]; } y[t] = sum;"
            ),
            "shared-race",
        ),
        ("s[t] = x[t]; __syncthreads(); s[t] = s[(t + 1) % 64];", "shared-race"),
        ("if (t < 32) { __syncthreads(); } y[t] = 1;", "divergent-barrier"),
        ("y[t] = __shfl_xor_sync(0x0000ffff, x[t], 1);", "excluded-lane"),
        ("if (t < 40) y[t] = __shfl_xor_sync(0xffffffff, x[t], 16);", "inactive-shuffle-source"),
    ],
)
def test_defects(body: str, kind: str) -> None:
    assert [event.kind for event in events(body)][:1] == [kind]


@pytest.mark.parametrize(
    "body",
    [
        "s[t] = x[t]; __syncthreads(); y[t] = s[63 - t];",
        # Threads of a warp: old code relies on their order.
        "s[t] = x[t]; y[t] = s[t ^ 1];",
        "s[t] = x[t]; y[t] = s[t];",
        (
            "for (int i = 0; i < 2; ++i) { s[t] = x[t]; __syncthreads(); y[t] = s[63 - t];"
            " __syncthreads(); }"
        ),
        # Two halves that do not meet.
        "s[t] = x[t]; __syncthreads(); s[64 + t] = s[(t + 1) % 64];",
        # A flag that everyone sets alike.
        "s[0] = 0.0f; s[0] = 1.0f; y[t] = s[0];",
        "if (t >= n) return; s[t] = x[t]; __syncthreads(); y[t] = s[63 - t];",
        "unsigned m = __activemask(); y[t] = __shfl_xor_sync(m, x[t], 1);",
        "if (t < 16) y[t] = __shfl_xor_sync(0x0000ffff, x[t], 1);",
        "s[t] = x[t]; __threadfence_block(); y[t] = s[63 - t];",
    ],
)
def test_what_is_sound(body: str) -> None:
    assert events(body) == []


def test_a_race_names_both_places() -> None:
    (event,) = events("s[t] = x[t];\n  y[t] = s[63 - t];")
    assert event.span.start_line == 4
    assert "element" in event.message
    assert "(line 3)" in event.message
    assert event.buffer == "s"


def test_one_warp_has_no_races() -> None:
    assert events("s[t] = x[t]; y[t] = s[31 - t];", threads=32) == []


def test_parts_of_an_element_are_not_guessed_at() -> None:
    body = "((char*)s)[t] = 1; y[t] = ((char*)s)[(t + 40) % 64];"
    assert events(body) == []


def test_a_value_that_one_lane_hands_to_all_is_defined() -> None:
    text = """
    __global__ void k(const float* x, float* y, int n) {
      float v;
      if (threadIdx.x % 32 == 0) v = x[threadIdx.x];
      v = __shfl_sync(0xffffffff, v, 0);
      y[threadIdx.x] = v;
    }"""
    x = np.arange(64, dtype=np.float32)
    arrays = {"x": x, "y": np.zeros(64, np.float32), "n": 64}
    program = parse(Source.of(text, "k.cu"))
    made = execute(program, "k", arrays, (1, 1, 1), (64, 1, 1), domain=Rounded())
    assert made.events == ()
    np.testing.assert_array_equal(np.asarray(made.outputs["y"]), x // 32 * 32)
