"""Finding what a file defines."""

from __future__ import annotations

import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.parse import parse
from migrate.source import Source


def kernels(text: str) -> list[str]:
    return [kernel.name for kernel in parse(Source.of(text, "a.cu")).kernels]


def test_finds_kernels_wherever_they_stand() -> None:
    text = """
    namespace a { namespace { __global__ void inner(int* p) { *p = 1; } } }
    extern "C" __global__ void c_name(int* p) { *p = 1; }
    extern "C" { __global__ void braced(int* p) { *p = 1; } }
    template <typename T, int N> __global__ void __launch_bounds__(N, 2) templated(T* p) {}
    static __global__ void quiet(int* p) {}
    __device__ int helper(int a) { return a; }
    void host() {}
    """
    assert kernels(text) == ["inner", "c_name", "braced", "templated", "quiet"]


def test_a_file_that_does_not_parse_as_a_whole_still_gives_its_kernels() -> None:
    text = """
    BIND(f32, thing)
    BIND(f16, other)
    __global__ void before(int* p) { *p = 1; }
    void host() { CHECK(x) foo(; }}}
    __global__ void after(int* p) { *p = 1; }
    """
    assert kernels(text) == ["before", "after"]


def test_a_definition_points_at_its_text() -> None:
    text = "// é\n__global__ void k(int* p) {\n  *p = 1;\n}\n"
    span = parse(Source.of(text, "a.cu")).kernels[0].span
    assert (span.start_line, span.start_column, span.end_line, span.end_column) == (2, 1, 4, 2)


def test_template_parameters_with_defaults() -> None:
    text = "template <typename T = float, int N = 4, bool B> __global__ void k(T* p) {}"
    found = parse(Source.of(text, "a.cu")).kernels[0].template
    assert [(p.name, p.kind, p.default is not None) for p in found] == [
        ("T", "type", True),
        ("N", "value", True),
        ("B", "value", False),
    ]


def test_other_definitions() -> None:
    program = parse(
        Source.of(
            """
            typedef unsigned int word;
            using real = float;
            enum Mode { first, second = 5, third };
            __constant__ float table[16];
            const int width = 32;
            int plain;
            """,
            "a.cu",
        )
    )
    assert set(program.aliases) == {"word", "real"}
    assert set(program.enumerators) == {"first", "second", "third"}
    assert {name: v.memory for name, v in program.variables.items()} == {
        "table": "constant",
        "width": "host",
    }


def test_parsing_stops_at_the_meter() -> None:
    text = "__global__ void k(int* p) {" + "*p = 1;" * 5000 + "}"
    meter = Meter(Budget(seconds=-1.0))
    with pytest.raises(Exhausted) as stopped:
        parse(Source.of(text, "a.cu"), meter=meter)
    assert stopped.value.kind == "seconds"
