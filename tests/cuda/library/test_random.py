"""cuRAND's Philox against the known answers of Random123, and against the algorithm in Python."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.source import Source
from tests.cuda.running import run

STEPS = 20_000_000
MASK = 0xFFFFFFFF


def philox(counter: int, key: int) -> list[int]:
    c = [counter >> 32 * i & MASK for i in range(4)]
    k = [key & MASK, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & MASK, first >> 32 ^ c[3] ^ k[1], first & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def stream(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    numbers: list[int] = []
    block = offset // 4
    while len(numbers) < count + 4:
        numbers += philox(sequence << 64 | block, seed)
        block += 1
    return numbers[offset % 4 :][:count]


def test_the_reference_gives_the_known_answers() -> None:
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(2**128 - 1, 2**64 - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (1234, 0), (0x123456789ABCDEF, 7), (5, 2)])
def test_draws_follow_the_counter(seed: int, offset: int) -> None:
    text = f"""
    __global__ void k(unsigned* out) {{
      curandStatePhilox4_32_10_t state;
      curand_init({seed}ull, threadIdx.x, {offset}, &state);
      unsigned* mine = out + threadIdx.x * 11;
      for (int i = 0; i < 6; i++) mine[i] = curand(&state);
      uint4 four = curand4(&state);
      mine[6] = four.x; mine[7] = four.y; mine[8] = four.z; mine[9] = four.w;
      mine[10] = curand(&state);
    }}
    """
    done = run(text, block=4, out=np.zeros(44, np.uint32), steps=STEPS)
    expected = [number for lane in range(4) for number in stream(seed, lane, offset, 11)]
    assert [int(number) for number in done.outputs["out"]] == expected


def test_uniform_draws_lie_above_zero_and_reach_one() -> None:
    text = """
    __global__ void k(float* out) {
      curandStatePhilox4_32_10_t state;
      curand_init(42, threadIdx.x, 0, &state);
      float4 v = curand_uniform4(&state);
      out[threadIdx.x * 4] = v.x; out[threadIdx.x * 4 + 1] = v.y;
      out[threadIdx.x * 4 + 2] = v.z; out[threadIdx.x * 4 + 3] = curand_uniform(&state);
    }
    """
    done = run(text, block=64, out=np.zeros(256, np.float32), steps=STEPS)
    drawn = np.asarray([stream(42, lane, 0, 5) for lane in range(64)])[:, [0, 1, 2, 4]]
    as_float = drawn.astype(np.uint32).astype(np.float32).astype(np.float64)
    expected = (as_float * 2.0**-32 + 2.0**-33).astype(np.float32)
    assert np.array_equal(done.outputs["out"], expected.reshape(-1))
    assert (np.asarray(done.outputs["out"]) > 0).all()


def test_skipping_ahead_is_drawing() -> None:
    text = """
    __global__ void k(unsigned* out) {
      curandStatePhilox4_32_10_t a, b;
      curand_init(9, 3, 1, &a);
      b = a;
      for (int i = 0; i < 10; i++) curand(&a);
      skipahead(10, &b);
      out[0] = curand(&a);
      out[1] = curand(&b);
    }
    """
    done = run(text, block=1, out=np.zeros(2, np.uint32), steps=STEPS)
    assert [int(number) for number in done.outputs["out"]] == [stream(9, 3, 11, 1)[0]] * 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("curandState s; curand_init(1, 0, 0, &s); x[0] = curand_uniform(&s);", "only Philox"),
        (
            "curandStatePhilox4_32_10_t s; curand_init(1, 0, 0, &s); x[0] = curand_normal(&s);",
            "only uniform draws",
        ),
    ],
)
def test_what_is_not_documented_is_refused(body: str, reason: str) -> None:
    made = function(parse(Source.of(f"__global__ void k(float* x) {{ {body} }}", "k.cu")), "k")
    assert any(reason in issue.reason for issue in made.issues), made.issues
