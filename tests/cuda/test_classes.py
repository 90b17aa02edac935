"""Structs, classes, templates and lambdas: read, and executed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.cuda.ast import Call, Component
from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.cuda.types import Struct
from migrate.source import Source, SourceError
from tests.cuda.running import run


def floats(count: int) -> np.ndarray[Any, Any]:
    return (np.arange(count, dtype=np.float32) - count / 3) / 4


def built(text: str, **template: object) -> Any:
    made = function(parse(Source.of(text, "a.cu")), "k", template)
    assert made.issues == (), made.issues
    return made


VECTOR = """
template <typename T, int N> struct alignas(16) Pack {
  static constexpr int size = N;
  using Element = T;
  T item[N];
  Pack() = default;
  __device__ explicit Pack(T all) { for (int i = 0; i < N; ++i) item[i] = all; }
  __device__ T& operator[](int i) { return item[i]; }
  __device__ const T& operator[](int i) const { return item[i]; }
  __device__ static Pack zeros() { return Pack(T(0)); }
  __device__ T total() const { T s = 0; for (int i = 0; i < size; ++i) s += item[i]; return s; }
};
template <typename T> using Four = Pack<T, 16 / sizeof(T)>;
template <typename T> __device__ Four<T> load(const T* from) {
  return *reinterpret_cast<const Four<T>*>(from);
}
template <typename T, int N> __device__ void store(T* to, const Pack<T, N>& what) {
  *reinterpret_cast<Pack<T, N>*>(to) = what;
}
"""


def test_a_packed_class_template_is_loaded_indexed_and_stored() -> None:
    text = (
        VECTOR
        + """
    __global__ void k(const float* x, float* y, float* sums) {
      using Row = Four<float>;
      int at = threadIdx.x * Row::size;
      Row in = load(x + at), out = Row::zeros();
      for (int j = 0; j < Row::size; ++j) out[j] += 2.0f * (float)in[j];
      store(y + at, out);
      sums[threadIdx.x] = out.total() + Pack<float, 2>(1.5f).total();
    }
    """
    )
    x = floats(32)
    done = run(text, block=8, x=x, y=np.zeros_like(x), sums=np.zeros(8, np.float32))
    assert np.array_equal(done.outputs["y"], 2 * x)
    assert np.allclose(done.outputs["sums"], (2 * x).reshape(8, 4).sum(axis=1) + 3)
    assert done.events == ()


def test_a_reference_returned_by_a_method_is_the_element_itself() -> None:
    text = (
        VECTOR
        + """
    __global__ void k(float* y) { Pack<float, 4> p; p[2] = y[0]; y[1] = p[2]; }
    """
    )
    made = built(text)
    target = made.body.body[1].expression.target
    assert isinstance(target.base, Component)
    assert isinstance(target.base.base.type, Struct)


def test_methods_operators_constructors_and_bases() -> None:
    text = """
    struct Base { float low; __device__ float clamp(float v) const { return v < low ? low : v; } };
    struct Pair : Base {
      float a, b = 3.0f;
      __device__ Pair(float first, float bound) : a(first) { low = bound; }
      __device__ Pair operator+(const Pair& o) const {
        Pair r(a + o.a, low); r.b = b + o.b; return r;
      }
      __device__ Pair& operator*=(float s) { a *= s; b *= s; return *this; }
      __device__ bool operator<(const Pair& o) const { return a < o.a; }
      __device__ operator float() const { return a + b; }
    };
    __device__ Pair operator-(const Pair& p) { return Pair(-p.a, p.low); }
    __global__ void k(const float* x, float* y) {
      int i = threadIdx.x;
      Pair p(x[i], -0.5f), q = p + Pair(1.0f, 0.0f);
      q *= 2.0f;
      y[i] = p.clamp(x[i]) + (p < q ? 10.0f : 20.0f) + q.b + (-p).a;
      y[i + 8] = q;
      y[i + 16] = this_one(q);
    }
    """.replace("__global__", "__device__ float this_one(float v) { return v; } __global__")
    x = floats(8)
    done = run(text, block=8, x=x, y=np.zeros(24, np.float32))
    a, b = (x + 1) * 2, np.float32(12)
    first = np.maximum(x, -0.5) + np.where(x < a, 10, 20) + b - x
    assert np.allclose(done.outputs["y"], np.concatenate([first, a + b, a + b]))


def test_structs_by_value_pointer_and_array() -> None:
    text = """
    struct Item { int key; float value; };
    struct Args { const float* x; float* y; int n; Item bias[2]; };
    __device__ void raise(Item* item, float by) { item->value += by; item->key++; }
    __device__ Item made(int key, float value) { return {key, value}; }
    __global__ void k(Args args, Item* out) {
      int i = threadIdx.x;
      if (i >= args.n) return;
      Item items[3] = {{1, args.x[i]}, {2}};
      raise(&items[0], args.bias[1].value);
      Item last = items[0];
      last.key += items[1].key + items[2].key;
      out[i] = last;
      args.y[i] = made(i, last.value).value;
    }
    """
    kind = np.dtype([("key", np.int32), ("value", np.float32)])
    x = floats(8)
    bias = np.array([(0, 0.5), (0, 0.25)], kind)
    given = {"args.x": x, "args.y": np.zeros(8, np.float32), "args.n": 6, "args.bias": bias}
    done = run(text, block=8, out=np.zeros(8, kind), **given)
    out = done.outputs["out"].view(kind)
    assert np.array_equal(out["value"][:6], x[:6] + np.float32(0.25))
    assert np.array_equal(out["key"], [4] * 6 + [0] * 2)
    assert np.array_equal(done.outputs["args.y"], np.append(x[:6] + np.float32(0.25), [0, 0]))
    assert done.events == ()


def test_a_kernel_parameter_that_is_a_struct_comes_apart() -> None:
    text = (
        "struct S { float* p; struct { int n; } in; }; __global__ void k(S s) { s.p[s.in.n] = 1; }"
    )
    made = built(text)
    assert [p.name for p in made.parameters] == ["s.p", "s.in.n"]


def test_functors_function_arguments_and_lambdas() -> None:
    text = """
    struct Add { __device__ float operator()(float a, float b) const { return a + b; } };
    struct Scale { float by; __device__ float operator()(float a, float) const { return a * by; } };
    __device__ float larger(float a, float b) { return a > b ? a : b; }
    template <float (*Op)(float, float)> __device__ float folded(float a, float b) {
      return Op(a, b);
    }
    template <typename Op> __device__ float applied(Op op, float a, float b) { return op(a, b); }
    template <typename Op> __device__ float made(float a, float b) { return Op()(a, b); }
    __global__ void k(const float* x, float* y) {
      int i = threadIdx.x;
      float a = x[i], b = 0.25f;
      auto twice = [&](float v) { b += 1.0f; return v * 2.0f; };
      auto kept = [b](float v) { return v + b; };
      auto raise = [&]() { b += 0.0f; };
      raise();
      float c = twice(a);
      y[i] = made<Add>(a, 1.0f) + applied(Scale{3.0f}, a, 0.0f) + folded<larger>(a, 0.0f)
           + applied([=](float p, float q) { return p - q + b; }, a, 1.0f)
           + applied([&](float p, float q) { c += 1.0f; return p * q; }, 2.0f, 3.0f)
           + applied(larger, 7.0f, a);
      y[i + 8] = b + kept(0.0f) + c;
    }
    """
    x = floats(8)
    done = run(text, block=8, x=x, y=np.zeros(16, np.float32))
    first = (x + 1) + 3 * x + np.maximum(x, 0) + (x - 1 + 1.25) + 6 + np.maximum(7, x)
    assert np.allclose(done.outputs["y"][:8], first)
    assert np.allclose(done.outputs["y"][8:], 1.25 + 0.25 + (2 * x + 1))


def test_specialisations_overloads_and_defaults() -> None:
    text = """
    template <typename T> struct Name { static const int value = 0; };
    template <> struct Name<float> { static const int value = 1; };
    template <typename T> struct Name<T*> { static const int value = 2 + Name<T>::value; };
    template <typename T> __device__ int which(T) { return 10; }
    template <> __device__ int which<float>(float) { return 20; }
    __device__ int over(int) { return 1; }
    __device__ int over(float) { return 2; }
    __device__ int over(const float*) { return 3; }
    template <class T> __device__ T filled(int v) { return 0; }
    template <> __device__ int filled(int v) { return v; }
    template <> __device__ int2 filled(int v) { return make_int2(v, v); }
    __device__ float& at(float4& v, int) { return v.y; }
    __device__ float at(const float4& v, int i) { return i ? v.y : v.x; }
    template <typename T> __device__ int form(T) { return 1; }
    template <typename T> __device__ int form(T*) { return 2; }
    template <typename T> __device__ int form(Name<T>) { return 3; }
    __device__ int later(int a, int b = 2 * 4) { return a + b; }
    template <int N, typename T = float> __device__ int sized(T (&a)[N]) { return N * sizeof(T); }
    template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>>
    __device__ int only(T) { return 100; }
    template <typename T, typename = std::enable_if_t<std::is_floating_point_v<T>>, int = 0>
    __device__ int only(T) { return 200; }
    __global__ void k(int* y, float* p) {
      double d[3] = {};
      y[0] = Name<int>::value; y[1] = Name<float>::value; y[2] = Name<float*>::value;
      y[3] = which(1); y[4] = which(1.0f); y[5] = over(1); y[6] = over(1.0f); y[7] = over(p);
      y[8] = later(1); y[9] = later(1, 1); y[10] = sized(d); y[11] = only(1); y[12] = only(1.0);
      if constexpr (std::is_same_v<std::conditional_t<(sizeof(int) > 2), float, int>, float>) {
        y[13] = std::numeric_limits<int>::max();
        float4 v = {}; at(v, 0) = 5;
        const float4 w = {1, 2, 3, 4};
        y[15] = filled<int>(3) + filled<int2>(4).y + filled<float>(9) + v.y + at(w, 0);
        y[14] = form(1) + 10 * form(p) + 100 * form(Name<int>());
      }
    }
    """
    done = run(text, block=1, y=np.zeros(16, np.int32), p=floats(1))
    expected = [0, 1, 3, 10, 20, 1, 2, 3, 9, 2, 24, 100, 200, 2**31 - 1, 321, 13]
    assert done.outputs["y"].tolist() == expected


def test_constexpr_functions_are_folded() -> None:
    text = """
    constexpr __device__ int up(int a, int b) { return (a + b - 1) / b; }
    constexpr int levels(int n) { int r = 0; while (n > 1) { n /= 2; ++r; } return r; }
    template <int N> __global__ void k(float* y) {
      constexpr int rows = up(N, 4);
      float local[rows + levels(N)];
      local[rows] = 1;
      y[0] = local[rows];
    }
    """
    made = built(text, N=10)
    assert str(made.body.body[1].variable.type) == "float[6]"


def test_functions_defined_outside_of_their_class() -> None:
    text = """
    template <typename T, int N> struct Row {
      T at[N];
      __device__ void fill(T v);
      __device__ T last() const;
    };
    template <typename T, int N> __device__ void Row<T, N>::fill(T v) {
      for (int i = 0; i < N; ++i) at[i] = v;
    }
    template <typename T, int N> __device__ T Row<T, N>::last() const { return at[N - 1]; }
    template <typename T> struct Row<T, 1> { T only; __device__ void fill(T v); };
    template <typename T> __device__ void Row<T, 1>::fill(T v) { only = v * 10; }
    template <> struct Row<int, 2> { int a, b; __device__ void fill(int v); };
    __device__ void Row<int, 2>::fill(int v) { a = v; b = -v; }
    struct Plain { int n; __device__ Plain(int v); __device__ int twice(); };
    __device__ Plain::Plain(int v) : n(v) {}
    __device__ int Plain::twice() { return 2 * n; }
    __global__ void k(float* y) {
      Row<float, 3> three; three.fill(1.5f); y[0] = three.last();
      Row<float, 1> one; one.fill(2.0f); y[1] = one.only;
      Row<int, 2> two; two.fill(4); y[2] = two.b;
      Plain plain(7); y[3] = plain.twice();
    }
    """
    done = run(text, block=1, y=np.zeros(4, np.float32))
    assert done.outputs["y"].tolist() == [1.5, 20, -4, 14]


def test_template_arguments_as_text() -> None:
    text = """
    template <typename T, int N> struct Pair { T a[N]; };
    typedef unsigned short half_bits;
    __device__ float same(float v) { return v; }
    enum Mode { First, Second = 5 };
    template <typename T, int M, float (*F)(float)> __global__ void k(float* y) {
      y[0] = F(sizeof(T) + M);
    }
    """
    for kind, size in (
        ("Pair<half_bits, 3>", 6),
        ("const float*", 8),
        ("Pair<Pair<int, 2>, 2>", 16),
    ):
        done = run(text, block=1, y=floats(1), template={"T": kind, "M": "Second", "F": "same"})
        assert done.outputs["y"][0] == size + 5
    with pytest.raises(SourceError, match="cannot be 'Missing<int>'"):
        built(text, T="Missing<int>", M=1, F="same")


def test_local_types_range_loops_and_enumerators() -> None:
    text = """
    __global__ void k(const int* x, int* y) {
      struct Best { int at; int value; };
      enum { None = -1, Some };
      typedef int Row[3];
      Row row = {x[0], x[1], x[2]};
      Best best{None, 0};
      int at = 0;
      for (int v : row) { if (v > best.value) best = {at, v}; ++at; }
      for (auto& v : row) v *= 2;
      y[0] = best.at; y[1] = best.value; y[2] = row[Some]; y[3] = sizeof(Best);
    }
    """
    done = run(text, block=1, x=np.array([3, 9, 4], np.int32), y=np.zeros(4, np.int32))
    assert done.outputs["y"].tolist() == [1, 9, 6, 8]


def test_a_value_of_each_thread_diverges_member_by_member() -> None:
    text = """
    struct Two { float a; int b; };
    __global__ void k(const float* x, float* y) {
      int i = threadIdx.x;
      Two t = {x[i], i};
      if (i % 2) t.a = 5; else t = Two{-1.0f, 100};
      Two u = i < 4 ? t : Two{7.0f, 7};
      y[i] = u.a + u.b;
    }
    """
    x = floats(8)
    done = run(text, block=8, x=x, y=np.zeros_like(x))
    assert done.outputs["y"].tolist() == [99, 6, 99, 8, 14, 14, 14, 14]


def test_a_call_through_an_object_keeps_its_place() -> None:
    text = """
    struct Sum { float total; __device__ void add(float v) { total += v; } };
    __global__ void k(Sum* sums) { sums[threadIdx.x].add(2.0f); }
    """
    made = built(text)
    call = made.body.body[0].expression
    assert isinstance(call, Call)
    assert call.function.parameters[0].storage == "reference"
    done = run(text, block=4, sums=floats(4))
    assert np.array_equal(done.outputs["sums"], floats(4) + 2)


@pytest.mark.parametrize(
    ("definition", "use", "reason"),
    [
        ("struct V { virtual __device__ int f() { return 1; } };", "V v;", "virtual"),
        ("struct B { int a : 3; };", "B b;", "bit fields"),
        (
            (
                "namespace a { __device__ int f(int v) { return v; } }"
                "namespace b { __device__ int f(int v) { return 2 * v; } }"
            ),
            "y[0] = b::f(1);",
            "several functions named f",
        ),
        ("struct D;", "D d;", "declared only"),
        ("__device__ odd_t f(int a) { return a; }", "y[0] = f(1);", "odd_t, which is not"),
        (
            "__device__ int f(odd_t a, int b) { if (a > b) return 1; return 2; }",
            "y[0] = f(1, 2);",
            "a is of type odd_t, which is not understood",
        ),
        ("struct U { wonder_t w; int n; };", "U u; y[0] = u.w;", "wonder_t"),
        ("struct S { int n; };", "S s; y[0] = s.missing;", "S has no member missing"),
        ("struct S { int n; };", "S s; s.go();", "S has no function go"),
        ("struct S { S(int) {} };", "S s(1, 2);", "takes 1 arguments"),
        ("struct S { S inside; };", "S s;", "of the class that is being defined"),
        (
            "struct A0 { int a; };"
            + "".join(f"struct A{n + 1} {{ A{n} a, b; }};" for n in range(20)),
            "A20 s;",
            "too many members",
        ),
        (
            "struct B0 { int a; };" + "".join(f"struct B{n + 1} {{ B{n} a; }};" for n in range(40)),
            "B40 s;",
            "nest too deep",
        ),
        ("constexpr int f() { while (true) {} return 1; }", "int a[f()];", "unknown length"),
        ("__device__ int f(int n) { return n ? f(n - 1) : 0; }", "y[0] = f(3);", "calls itself"),
    ],
)
def test_what_is_not_understood_of_a_class(definition: str, use: str, reason: str) -> None:
    text = f"{definition} __global__ void k(int* y) {{ {use} }}"
    made = function(parse(Source.of(text, "a.cu")), "k")
    found = [*made.issues]
    for statement in made.body.body:
        call = getattr(getattr(statement, "expression", None), "value", None)
        if isinstance(call, Call):
            found += call.function.issues
    assert any(reason in issue.reason for issue in found), found
