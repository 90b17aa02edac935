"""cuRAND's device functions for Philox4x32-10.

The generator is that of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2,
3" (SC 2011), whose known answers are its test.  How `curand_init` uses seed, subsequence and
offset, and how a draw becomes a float, is what the cuRAND documentation says of its device API
("Philox_4x32_10 generator", "Uniform distribution": 0 excluded, 1 included) with the counter laid
out as in its published header: the seed is the key, the subsequence the upper half of the
counter, an offset counts single draws of four per counter.

XORWOW (`curandState`) and MRG32k3a are refused: how they are seeded is not documented.  So are
normal and other distributions.

For the lifter: a call of a function named `curand_uniform` (and so on) whose first argument is the
state; what it computes with integers is of no interest to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.cuda.ast import Expression
from migrate.cuda.conversions import decay
from migrate.cuda.library.request import Handler, Lowered, Request, TypeMaker, unclear
from migrate.cuda.library.text import inlined
from migrate.cuda.types import NAMED, UNSIGNED, Array, Layout, Member, Pointer, Struct, Type

PHILOX = Struct(
    "curandStatePhilox4_32_10_t",
    "library:curandStatePhilox4_32_10_t",
    Layout(
        (
            Member("ctr", NAMED["uint4"], 0),
            Member("output", NAMED["uint4"], 16),
            Member("key", NAMED["uint2"], 32),
            Member("STATE", UNSIGNED, 40),
        ),
        64,
        16,
    ),
)

# The states of other generators: only their size is known of them.
_OTHERS = {
    "curandState": 48,
    "curandState_t": 48,
    "curandStateXORWOW": 48,
    "curandStateXORWOW_t": 48,
    "curandStateMRG32k3a": 72,
    "curandStateMRG32k3a_t": 72,
}


def _other(name: str, size: int) -> TypeMaker:
    words = Member("words", Array(UNSIGNED, size // 4), 0)
    kind = Struct(name, f"library:{name}", Layout((words,), size, 8))
    return lambda _parameters: kind


_TEXT = """
__device__ uint4 rounds(uint4 c, uint2 k) {
  for (int r = 0; r < 10; ++r) {
    unsigned long long first = 0xD2511F53ull * c.x, second = 0xCD9E8D57ull * c.z;
    c = make_uint4((unsigned)(second >> 32) ^ c.y ^ k.x, (unsigned)second,
                   (unsigned)(first >> 32) ^ c.w ^ k.y, (unsigned)first);
    k = make_uint2(k.x + 0x9E3779B9u, k.y + 0xBB67AE85u);
  }
  return c;
}
template <typename S> __device__ void advance(S* s) {
  uint4 c = s->ctr;
  c.x += 1u;
  if (c.x == 0u) {
    c.y += 1u;
    if (c.y == 0u) {
      c.z += 1u;
      if (c.z == 0u) c.w += 1u;
    }
  }
  s->ctr = c;
  s->output = rounds(c, s->key);
}
template <typename S> __device__
void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                 S* s) {
  unsigned long long n = offset >> 2;
  s->key = make_uint2((unsigned)seed, (unsigned)(seed >> 32));
  s->ctr = make_uint4((unsigned)n, (unsigned)(n >> 32), (unsigned)sequence,
                      (unsigned)(sequence >> 32));
  s->STATE = (unsigned)(offset & 3ull);
  s->output = rounds(s->ctr, s->key);
}
__device__ unsigned chosen(uint4 v, unsigned at) {
  return at == 0u ? v.x : at == 1u ? v.y : at == 2u ? v.z : v.w;
}
template <typename S> __device__ unsigned curand(S* s) {
  unsigned at = s->STATE;
  unsigned drawn = chosen(s->output, at);
  if (at == 3u) {
    advance<S>(s);
    s->STATE = 0u;
  } else {
    s->STATE = at + 1u;
  }
  return drawn;
}
template <typename S> __device__ uint4 curand4(S* s) {
  uint4 a = s->output;
  advance<S>(s);
  uint4 b = s->output;
  unsigned at = s->STATE;
  return make_uint4(chosen(a, at), at < 3u ? chosen(a, at + 1u) : b.x,
                    at < 2u ? chosen(a, at + 2u) : at == 2u ? b.x : b.y,
                    at == 0u ? a.w : at == 1u ? b.x : at == 2u ? b.y : b.z);
}
__device__ float unit(unsigned x) { return (float)x * 2.3283064e-10f + 1.1641532e-10f; }
template <typename S> __device__ float curand_uniform(S* s) { return unit(curand<S>(s)); }
template <typename S> __device__ float4 curand_uniform4(S* s) {
  uint4 v = curand4<S>(s);
  return make_float4(unit(v.x), unit(v.y), unit(v.z), unit(v.w));
}
template <typename S> __device__ void skipahead(unsigned long long n, S* s) {
  unsigned long long low = ((unsigned long long)s->ctr.y << 32) | s->ctr.x;
  unsigned long long high = ((unsigned long long)s->ctr.w << 32) | s->ctr.z;
  unsigned long long at = s->STATE + (n & 3ull);
  unsigned long long sum = low + (n >> 2) + (at >> 2);
  if (sum < low) high += 1ull;
  s->ctr = make_uint4((unsigned)sum, (unsigned)(sum >> 32), (unsigned)high,
                      (unsigned)(high >> 32));
  s->STATE = (unsigned)(at & 3ull);
  s->output = rounds(s->ctr, s->key);
}
"""


def _called(request: Request, function: str, arguments: Sequence[Expression]) -> Lowered:
    values = [decay(value) for value in arguments]
    bad = unclear(values)
    if bad is not None:
        return bad
    state = values[-1].type
    if not isinstance(state, Pointer) or state.element != PHILOX:
        return request.opaque(
            f"{request.name} of {state}: only Philox's numbers are documented",
            _RESULTS.get(function),
        )
    made = inlined(_TEXT, function, {"S": PHILOX}, values, request.where, request.name)
    return request.opaque(made) if isinstance(made, str) else made


_RESULTS: dict[str, Type] = {
    "curand": UNSIGNED,
    "curand4": NAMED["uint4"],
    "curand_uniform": NAMED["float"],
    "curand_uniform4": NAMED["float4"],
}


def _draw(request: Request) -> Lowered:
    """`curand_uniform(&state)` and its like."""
    if len(request.arguments) != 1:
        return None
    return _called(request, request.name, request.values())


def _start(request: Request) -> Lowered:
    """`curand_init(seed, subsequence, offset, &state)`, `skipahead(n, &state)`."""
    if len(request.arguments) != (4 if request.name == "curand_init" else 2):
        return None
    return _called(request, request.name, request.values())


def _refused(request: Request) -> Lowered:
    return request.opaque(f"{request.name} is not understood: only uniform draws are documented")


FUNCTIONS: dict[str, Handler] = {
    "curand_init": _start,
    "skipahead": _start,
    **dict.fromkeys(_RESULTS, _draw),
    **dict.fromkeys(
        (
            "curand_uniform_double",
            "curand_uniform2_double",
            "curand_normal",
            "curand_normal2",
            "curand_normal4",
            "curand_normal_double",
            "curand_log_normal",
            "curand_poisson",
        ),
        _refused,
    ),
}

MEMBERS: dict[str, Handler] = {}

TYPES: dict[str, TypeMaker] = {
    "curandStatePhilox4_32_10_t": lambda _parameters: PHILOX,
    "curandStatePhilox4_32_10": lambda _parameters: PHILOX,
    **{name: _other(name, size) for name, size in _OTHERS.items()},
}
