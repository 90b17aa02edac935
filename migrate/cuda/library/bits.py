"""Integer functions of the CUDA Math API ("Integer Intrinsics", "SIMD Intrinsics").

Each is written in CUDA with ordinary operators, exactly; what PTX says of its instruction is the
source (PTX ISA, "Integer Arithmetic Instructions" and "Logic and Shift Instructions").

For the lifter: calls of small functions of integers.
"""

from __future__ import annotations

from migrate.cuda.ast import Expression
from migrate.cuda.library.request import Handler, Lowered, Request, TypeMaker
from migrate.cuda.library.text import inlined

_TEXT = """
__device__ int count(unsigned v) {
  v = v - ((v >> 1) & 0x55555555u);
  v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0fu;
  return (int)((v * 0x01010101u) >> 24);
}
__device__ int count64(unsigned long long v) {
  return count((unsigned)v) + count((unsigned)(v >> 32));
}
__device__ int leading(unsigned v) {
  v |= v >> 1; v |= v >> 2; v |= v >> 4; v |= v >> 8; v |= v >> 16;
  return 32 - count(v);
}
__device__ int leading64(unsigned long long v) {
  int high = leading((unsigned)(v >> 32)), low = leading((unsigned)v);
  return high < 32 ? high : 32 + low;
}
__device__ int first(unsigned v) { return v == 0u ? 0 : count(v ^ (v - 1u)); }
__device__ int first64(unsigned long long v) { return v == 0ull ? 0 : count64(v ^ (v - 1ull)); }
__device__ unsigned reversed(unsigned v) {
  v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
  v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
  v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
  v = ((v >> 8) & 0x00ff00ffu) | ((v & 0x00ff00ffu) << 8);
  return (v >> 16) | (v << 16);
}
__device__ unsigned long long reversed64(unsigned long long v) {
  return ((unsigned long long)reversed((unsigned)v) << 32) | reversed((unsigned)(v >> 32));
}
__device__ int high(int a, int b) { return (int)(((long long)a * (long long)b) >> 32); }
__device__ unsigned uhigh(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a * (unsigned long long)b) >> 32);
}
__device__ unsigned long long uhigh64(unsigned long long a, unsigned long long b) {
  unsigned long long al = a & 0xffffffffull, ah = a >> 32, bl = b & 0xffffffffull, bh = b >> 32;
  unsigned long long low = al * bl, m1 = ah * bl + (low >> 32), m2 = al * bh + (m1 & 0xffffffffull);
  return ah * bh + (m1 >> 32) + (m2 >> 32);
}
__device__ long long high64(long long a, long long b) {
  unsigned long long h = uhigh64((unsigned long long)a, (unsigned long long)b);
  if (a < 0) h -= (unsigned long long)b;
  if (b < 0) h -= (unsigned long long)a;
  return (long long)h;
}
__device__ unsigned part(unsigned a, unsigned b, unsigned which) {
  unsigned n = which & 7u;
  unsigned byte = ((n < 4u ? a : b) >> ((n & 3u) * 8u)) & 0xffu;
  return (which & 8u) ? ((byte & 0x80u) ? 0xffu : 0u) : byte;
}
__device__ unsigned permuted(unsigned a, unsigned b, unsigned s) {
  return part(a, b, s & 7u) | (part(a, b, (s >> 4) & 7u) << 8)
       | (part(a, b, (s >> 8) & 7u) << 16) | (part(a, b, (s >> 12) & 7u) << 24);
}
__device__ unsigned joined_left(unsigned low, unsigned up, unsigned s) {
  s &= 31u;
  return s == 0u ? up : (up << s) | (low >> (32u - s));
}
__device__ unsigned joined_right(unsigned low, unsigned up, unsigned s) {
  s &= 31u;
  return s == 0u ? low : (low >> s) | (up << (32u - s));
}
__device__ unsigned joined_left_clamped(unsigned low, unsigned up, unsigned s) {
  return s >= 32u ? low : joined_left(low, up, s);
}
__device__ unsigned joined_right_clamped(unsigned low, unsigned up, unsigned s) {
  return s >= 32u ? up : joined_right(low, up, s);
}
__device__ int dot(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += (int)(signed char)(a >> (8 * i)) * (int)(signed char)(b >> (8 * i));
  }
  return c;
}
__device__ unsigned udot(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += ((a >> (8 * i)) & 0xffu) * ((b >> (8 * i)) & 0xffu);
  return c;
}
__device__ unsigned apart(int a, int b, unsigned c) {
  return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c;
}
__device__ unsigned uapart(unsigned a, unsigned b, unsigned c) {
  return (a > b ? a - b : b - a) + c;
}
__device__ int middle(int a, int b) { return (int)(((long long)a + (long long)b) >> 1); }
__device__ int middle_up(int a, int b) { return (int)(((long long)a + (long long)b + 1) >> 1); }
"""

_WRITTEN = {
    "__popc": "count",
    "__popcll": "count64",
    "__clz": "leading",
    "__clzll": "leading64",
    "__ffs": "first",
    "__ffsll": "first64",
    "__brev": "reversed",
    "__brevll": "reversed64",
    "__mulhi": "high",
    "__umulhi": "uhigh",
    "__mul64hi": "high64",
    "__umul64hi": "uhigh64",
    "__byte_perm": "permuted",
    "__funnelshift_l": "joined_left",
    "__funnelshift_r": "joined_right",
    "__funnelshift_lc": "joined_left_clamped",
    "__funnelshift_rc": "joined_right_clamped",
    "__dp4a": "dot",
    "__sad": "apart",
    "__usad": "uapart",
    "__hadd": "middle",
    "__rhadd": "middle_up",
}


def _integer(request: Request) -> Lowered:
    from migrate.cuda.types import Scalar, Unknown

    values = request.values()
    unclear = next((value for value in values if isinstance(value.type, Unknown)), None)
    if unclear is not None:
        return unclear
    if request.name == "__dp4a" and len(values) == 3:
        values = [_word(value, request) for value in values]
    if not all(isinstance(v.type, Scalar) and v.type.is_integer for v in values):
        # `__hadd` of halves is another function.
        return None
    function = _WRITTEN[request.name]
    if request.name == "__dp4a" and all(
        isinstance(v.type, Scalar) and v.type.is_unsigned for v in values
    ):
        function = "udot"
    made = inlined(_TEXT, function, {}, values, request.where, request.name)
    return request.opaque(made) if isinstance(made, str) else made


def _word(value: Expression, request: Request) -> Expression:
    """Four bytes as the word that they are."""
    from migrate.cuda.calls import bits_as
    from migrate.cuda.types import INT, UNSIGNED, Vector

    if not isinstance(value.type, Vector) or value.type.size != 4 or value.type.lanes != 4:
        return value
    word = UNSIGNED if value.type.element.is_unsigned else INT
    return bits_as(value, word, request.node, request.scope)


FUNCTIONS: dict[str, Handler] = dict.fromkeys(_WRITTEN, _integer)
MEMBERS: dict[str, Handler] = {}
TYPES: dict[str, TypeMaker] = {}
