"""Constructs of kernels built by hand, and the census labels of the same kernels."""

import pytest

from migrate.ir.census import computes, work_mapping
from migrate.ir.constructs import constructs
from migrate.ir.index import Index, ceil_div
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Barrier,
    Buffer,
    Cast,
    Contract,
    Fill,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Merge,
    Opaque,
    Output,
    Parallel,
    Position,
    Random,
    Reduce,
    Rounding,
    Scan,
    Scatter,
    Select,
    Space,
    State,
    Statements,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import less
from migrate.ir.validate import problems
from migrate.numerics.dtypes import DType
from migrate.source import Frame
from tests.align.kernels import BF16, F32, Faults, at, cuda, nki, reduction_cuda, reduction_nki

I32 = DType.INT32


def span(line, column=1, via=()):
    return at("k", line, column, via)


def axis(name, extent, kind, line=5, sources=()):
    return Axis(name, Index.of(extent), kind, span(line), sources)


def hbm(name, role, *shape, dtype=F32):
    return Buffer(name, tuple(map(Index.of, shape)), dtype, Space.HBM, role, span(1))


def scratch(name, space, *shape, dtype=F32):
    return Buffer(name, tuple(map(Index.of, shape)), dtype, space, "scratch", span(1))


def kernel(buffers, body, outputs=("out",), last=1, coverage=1.0):
    made = Kernel(
        name="kernel",
        side="cuda",
        span=span(1),
        sizes=("n",),
        buffers=tuple(buffers),
        body=tuple(body),
        outputs=tuple(Output(Version(name, last)) for name in outputs),
        statements=Statements(100, round(100 * (1 - coverage))),
    )
    assert problems(made) == ()
    return made


def v(name, dtype=F32):
    return Value(name, dtype)


def ax(name):
    return Index.axis(name)


def store(index, value, line=9, name="out", number=0, **more):
    into = Version(name, number)
    return Store(Version(name, number + 1), into, index, value, span(line), **more)


def shown(found):
    return [(c.kind, c.summary) for c in found]


def find(found, kind):
    return [c for c in found if c.kind == kind]


def one(found, kind):
    (construct,) = find(found, kind)
    return construct


# -- maps ----------------------------------------------------------------------------------


def test_a_guarded_map():
    found = constructs(cuda({"out": ("add", "x", "y")}))
    assert shown(found) == [
        ("tile-axis", "grid (n + 3) // 4 × block 4"),
        ("mask", "4*b + t < n"),
        ("stage-in", "load x"),
        ("stage-in", "load y"),
        ("elementwise", "add"),
        ("output-store", "store out"),
    ]
    assert [c.id for c in found] == ["1", "2", "3", "4", "5", "6"]
    assert [c.after for c in found] == [(), (), (), (), ("3", "4"), ("5",)]
    assert found[1].tensors == ("x", "y", "out")
    assert found[4].dtypes == (F32,)


def test_two_calls_of_one_helper_are_one_construct():
    found = constructs(nki({"out": ("add", "x", "y")}, 84))
    loads = find(found, "stage-in")
    assert [c.tensors for c in loads] == [("x",), ("y",)]
    main, rest = loads[0].spans
    assert main.via == ()
    assert [frame.name for frame in rest.via] == ["block"]
    assert loads[0].parts == ((main, "load x"),)
    # Dataflow goes through the tiles on chip.
    assert one(found, "elementwise").after == tuple(c.id for c in loads)
    assert one(found, "output-store").after == (one(found, "elementwise").id,)


def test_edges_of_tiles():
    found = constructs(nki({"out": ("add", "x", "y")}, 84))
    bound, rest = find(found, "mask")
    assert (bound.attribute("form"), bound.summary) == ("bound", "partition min(-4*row + 10, 4)")
    assert bound.tensors == ("x", "y", "out")
    assert bound.span.start_line == 60
    assert (rest.attribute("form"), rest.summary) == ("rest", "the rest: 1 × 4")
    assert rest.span.start_line == 61
    assert find(constructs(nki({"out": ("add", "x", "y")}, 64)), "mask") == []


def test_what_is_done_where_in_a_region():
    found = constructs(cuda({"out": ("maximum", ("add", "x", "bias"), 0.0)}))
    region = one(found, "elementwise")
    assert region.operators == ("add", "maximum")
    assert [word for _, word in region.parts] == ["add", "maximum"]
    assert region.attribute("functions") == "no"
    assert one(found, "constant").numbers == (0.0,)
    assert (
        one(constructs(cuda({"out": ("exp", "x")})), "elementwise").attribute("functions") == "yes"
    )


def test_a_condition_asked_at_each_access_is_one_mask():
    inside = less(ax("t"), Index.size("n"))
    body = (
        Load(v("a"), Version("x", 0), (ax("t"),), span(7), inside),
        store((ax("t"),), v("a"), where=inside),
    )
    threads = axis("t", 256, AxisKind.BLOCK)
    made = kernel(
        (hbm("x", "in", Index.size("n")), hbm("out", "out", Index.size("n"))),
        (Parallel((threads,), body, span(5)),),
    )
    mask = one(constructs(made), "mask")
    assert (mask.summary, mask.tensors) == ("t < n", ("x", "out"))
    assert [s.start_line for s in mask.spans] == [7, 9]


def test_a_condition_on_data():
    body = (
        Load(v("a"), Version("x", 0), (ax("t"),), span(7)),
        Fill(v("z"), 0.0, span(8)),
        Map(v("c", DType.BOOL), "greater", (v("a"), v("z")), span(8)),
        Guard(
            v("c", DType.BOOL),
            (store((ax("t"),), v("a")),),
            span(8),
            (),
            (Merge(Version("out", 2), Version("out", 1), Version("out", 0)),),
        ),
    )
    made = kernel(
        (hbm("x", "in", 8), hbm("out", "out", 8)),
        (Parallel((axis("t", 8, AxisKind.BLOCK),), body, span(5)),),
        last=2,
    )
    mask = one(constructs(made), "mask")
    assert (mask.attribute("on"), mask.tensors) == ("data", ("out",))


def test_an_axis_that_only_moves_data_on_chip_is_no_work():
    found = constructs(nki({"out": ("add", "x", "y")}, 64))
    names = {name for name, _ in one(found, "tile-axis").attributes}
    assert "row" in names
    assert not any(name.startswith("p_compute") for name in names)


# -- conversions ---------------------------------------------------------------------------


def casted(to, rounding=Rounding.NEAREST_EVEN, source=F32):
    body = (
        Load(v("a", source), Version("x", 0), (ax("t"),), span(7)),
        Cast(v("b", to), v("a", source), span(8), rounding),
        store((ax("t"),), v("b", to)),
    )
    return kernel(
        (hbm("x", "in", 8, dtype=source), hbm("out", "out", 8, dtype=to)),
        (Parallel((axis("t", 8, AxisKind.BLOCK),), body, span(5)),),
    )


def test_casts_that_lose_something_are_constructs():
    cast = one(constructs(casted(BF16)), "cast")
    assert dict(cast.attributes) == {
        "from": "float32",
        "to": "bfloat16",
        "rounding": "nearest-even",
    }
    assert cast.tensors == ("out",)
    assert one(constructs(casted(I32, Rounding.TOWARD_ZERO)), "cast").attribute("to") == "int32"
    assert find(constructs(casted(F32, source=BF16)), "cast") == []


def test_a_cast_into_a_tile_that_is_computed_with_belongs_to_no_tensor():
    found = constructs(nki({"out": ("add", "x", "y")}, 64, Faults(tile=BF16)))
    assert [cast.tensors for cast in find(found, "cast")] == [(), ()]


# -- reductions ----------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["add", "multiply", "maximum"])
def test_a_loop_with_a_running_value_is_a_reduction(operator):
    found = constructs(reduction_cuda(6, 5, operator))
    reduction = one(found, "reduction")
    assert reduction.summary == f"{operator} over 5"
    assert reduction.attribute("operator") == operator
    assert reduction.attribute("scope") == "sequential"
    assert reduction.after == (one(found, "stage-in").id, one(found, "initial-value").id)[::-1]
    assert find(found, "elementwise") == []
    assert find(found, "constant") == []


def test_a_reduce_is_a_reduction():
    found = constructs(reduction_nki(6, 5))
    reduction = one(found, "reduction")
    assert (reduction.summary, reduction.attribute("scope")) == ("add over 5", "free")
    assert reduction.after == (one(found, "stage-in").id,)
    assert one(found, "output-store").after == (reduction.id,)


def test_a_loop_that_does_not_combine_is_no_reduction():
    # Newton's iteration: what is carried is computed anew in every round.
    t, k = axis("t", 8, AxisKind.BLOCK), axis("k", 3, AxisKind.SEQUENTIAL)
    body = (
        Load(v("a"), Version("x", 0), (ax("t"),), span(7)),
        Fold(
            (k,),
            (State(v("r"), v("a"), v("i"), v("s")),),
            (
                Map(v("q"), "divide", (v("a"), v("i")), span(8)),
                Map(v("s"), "add", (v("q"), v("a")), span(8)),
            ),
            span(8),
        ),
        store((ax("t"),), v("r")),
    )
    made = kernel((hbm("x", "in", 8), hbm("out", "out", 8)), (Parallel((t,), body, span(5)),))
    found = constructs(made)
    assert find(found, "reduction") == []
    assert one(found, "elementwise").operators == ("divide", "add")


def matmul(how):
    """out[i, j] = sum over k of a[i, k] b[k, j], the sum kept in three ways."""
    i, j = axis("i", 4, AxisKind.BLOCK), axis("j", 4, AxisKind.BLOCK)
    k = axis("k", 6, AxisKind.SEQUENTIAL)
    loads = (
        Load(v("a"), Version("a", 0), (ax("i"), ax("k")), span(7)),
        Load(v("b"), Version("b", 0), (ax("k"), ax("j")), span(7, 9)),
    )
    buffers = [hbm("a", "in", 4, 6), hbm("b", "in", 6, 4), hbm("out", "out", 4, 4)]
    start = Fill(v("z"), 0.0, span(6))
    last = store((ax("i"), ax("j")), v("total"))
    if how == "contract":
        summed = Contract(v("total"), (k,), loads, v("a"), v("b"), span(8))
        body = (summed, last)
    elif how == "fma":
        step = Map(v("s"), "fma", (v("a"), v("b"), v("acc")), span(8))
        state = State(v("total"), v("z"), v("acc"), v("s"))
        body = (start, Fold((k,), (state,), (*loads, step), span(8)), last)
    elif how == "register":
        steps = (
            Map(v("p"), "multiply", (v("a"), v("b")), span(8)),
            Map(v("s"), "add", (v("acc"), v("p")), span(8, 9)),
        )
        state = State(v("total"), v("z"), v("acc"), v("s"))
        body = (start, Fold((k,), (state,), (*loads, *steps), span(8)), last)
    else:
        buffers.append(scratch("acc", Space.PRIVATE, 1))
        zero = (Index.of(0),)
        steps = (
            Load(v("was"), Version("acc", 2), zero, span(8)),
            Map(v("p"), "multiply", (v("a"), v("b")), span(8)),
            Map(v("s"), "add", (v("was"), v("p")), span(8)),
            Store(Version("acc", 3), Version("acc", 2), zero, v("s"), span(8)),
        )
        state = State(Version("acc", 4), Version("acc", 1), Version("acc", 2), Version("acc", 3))
        body = (
            start,
            Store(Version("acc", 1), Version("acc", 0), zero, v("z"), span(6)),
            Fold((k,), (state,), (*loads, *steps), span(8)),
            Load(v("total"), Version("acc", 4), zero, span(9)),
            last,
        )
    return kernel(buffers, (Parallel((i, j), body, span(5)),))


@pytest.mark.parametrize("how", ["contract", "fma", "register", "array"])
def test_a_sum_of_products_is_a_contraction(how):
    found = constructs(matmul(how))
    product = one(found, "contraction")
    assert product.summary == "sum of products over 6"
    loads = {c.id for c in find(found, "stage-in")}
    assert loads <= set(product.after)
    assert product.id in one(found, "output-store").after
    assert find(found, "elementwise") == find(found, "reduction") == []
    assert len(find(found, "initial-value")) == (0 if how == "contract" else 1)
    assert computes(matmul(how)) == "GEMM/GEMV"


def test_a_sum_of_squares_is_a_reduction():
    t, k = axis("t", 4, AxisKind.BLOCK), axis("k", 6, AxisKind.SEQUENTIAL)
    body = (
        Fill(v("z"), 0.0, span(6)),
        Fold(
            (k,),
            (State(v("r"), v("z"), v("i"), v("s")),),
            (
                Load(v("a"), Version("x", 0), (ax("t"), ax("k")), span(7)),
                Map(v("s"), "fma", (v("a"), v("a"), v("i")), span(8)),
            ),
            span(8),
        ),
        store((ax("t"),), v("r")),
    )
    made = kernel((hbm("x", "in", 4, 6), hbm("out", "out", 4)), (Parallel((t,), body, span(5)),))
    assert one(constructs(made), "reduction").attribute("operator") == "add"


def block_sum(operator="add"):
    """A loop of each thread, a step of shuffles, then a step through shared memory."""
    t, k = axis("t", 8, AxisKind.BLOCK), axis("k", 5, AxisKind.SEQUENTIAL)
    other = ax("t") + 4 - 8 * ((ax("t") + 4) // 8)
    few = less(ax("t"), 2)
    body = (
        Fill(v("z"), 0.0, span(6)),
        Fold(
            (k,),
            (State(v("mine"), v("z"), v("i"), v("s")),),
            (
                Load(v("a"), Version("x", 0), (ax("t"), ax("k")), span(7)),
                Map(v("e"), "exp", (v("a"),), span(7)),
                Map(v("s"), operator, (v("i"), v("e")), span(8)),
            ),
            span(7),
        ),
        Store(Version("swap", 1), Version("swap", 0), (ax("t"),), v("mine"), span(9)),
        Barrier("warp", span(9)),
        Load(v("theirs"), Version("swap", 1), (other,), span(9)),
        Map(v("both"), "add", (v("mine"), v("theirs")), span(9)),
        Store(Version("s", 1), Version("s", 0), (ax("t"),), v("both"), span(10)),
        Barrier("block", span(11)),
        Load(v("b"), Version("s", 1), (ax("t"),), span(12), few),
        Fill(v("y"), 0.0, span(12)),
        Select(v("c"), few, v("b"), v("y"), span(12)),
        Store(Version("again", 1), Version("again", 0), (ax("t"),), v("c"), span(13)),
        Load(v("d"), Version("again", 1), (other,), span(13)),
        Map(v("total"), "add", (v("c"), v("d")), span(13)),
        store((ax("t"),), v("total"), 14),
    )
    return kernel(
        (
            hbm("x", "in", 8, 5),
            hbm("out", "out", 8),
            scratch("swap", Space.PRIVATE, 8),
            scratch("s", Space.ONCHIP, 8),
            scratch("again", Space.PRIVATE, 8),
        ),
        (Parallel((axis("g", 1, AxisKind.GRID), t), body, span(5)),),
    )


def test_a_reduction_over_the_threads_of_a_block_is_one():
    made = block_sum()
    found = constructs(made)
    total = one(found, "reduction")
    assert total.attribute("scope") == "sequential+warp+block"
    assert [s.start_line for s, _ in total.parts] == [8, 9, 12, 13]
    assert [word for _, word in total.parts] == ["add over 5", "add", "select", "add"]
    assert [c.numbers for c in find(found, "initial-value")] == [(0.0,), (0.0,)]
    assert find(found, "constant") == []
    assert one(found, "elementwise").operators == ("exp",)
    # Who reads shared memory is no question of the tensor's edge.
    assert one(found, "mask").attribute("on") == "onchip"
    assert (computes(made), work_mapping(made)) == ("row/full reduce", "single block")


def test_an_exchange_by_another_operator_is_another_reduction():
    first, second = find(constructs(block_sum("multiply")), "reduction")
    assert first.attribute("operator") == "multiply"
    assert (second.attribute("operator"), second.summary) == ("add", "add over threads")
    assert first.id in second.after


def test_zeros_at_an_edge_are_part_of_the_staging():
    t = axis("t", 8, AxisKind.BLOCK)
    inside = less(ax("t"), 5)
    body = (
        Load(v("a"), Version("x", 0), (ax("t"),), span(7), inside),
        Fill(v("z"), 0.0, span(7)),
        Select(v("b"), inside, v("a"), v("z"), span(7)),
        Store(Version("s", 1), Version("s", 0), (ax("t"),), v("b"), span(7)),
        Load(v("c"), Version("s", 1), (Index.of(7) - ax("t"),), span(9)),
        store((ax("t"),), v("c")),
    )
    made = kernel(
        (hbm("x", "in", 5), hbm("out", "out", 8), scratch("s", Space.ONCHIP, 8)),
        (Parallel((t,), body, span(5)),),
    )
    found = constructs(made)
    assert one(found, "stage-in").attribute("into") == "onchip"
    assert find(found, "elementwise") == []
    assert one(found, "constant").numbers == (0.0,)


# -- the rest --------------------------------------------------------------------------------


def test_shared_memory_and_barriers():
    t = axis("t", 8, AxisKind.BLOCK)
    shared = scratch("s", Space.ONCHIP, 8)
    back = Index.of(7) - ax("t")
    body = (
        Load(v("a"), Version("x", 0), (ax("t"),), span(7)),
        Store(Version("s", 1), Version("s", 0), (ax("t"),), v("a"), span(7)),
        Barrier("block", span(8)),
        Load(v("b"), Version("s", 1), (back,), span(9)),
        store((ax("t"),), v("b")),
    )
    made = kernel(
        (hbm("x", "in", 8), hbm("out", "out", 8), shared), (Parallel((t,), body, span(5)),)
    )
    found = constructs(made)
    assert one(found, "stage-in").attribute("into") == "onchip"
    assert one(found, "barrier").attribute("scope") == "block"
    assert one(found, "output-store").after == (one(found, "stage-in").id,)
    assert one(constructs(cuda({"out": "x"})), "stage-in").attribute("into") == "register"


def test_a_chain_through_tiles_is_one_region():
    p = axis("p", 8, AxisKind.PARTITION)
    tile = scratch("s", Space.ONCHIP, 8)
    moved = scratch("m", Space.ONCHIP, 8)

    def over(name, *ops):
        return Parallel((axis(name, 8, AxisKind.PARTITION),), ops, span(5))

    made = kernel(
        (hbm("x", "in", 8), hbm("out", "out", 8), tile, moved),
        (
            over(
                "p0",
                Load(v("a"), Version("x", 0), (ax("p0"),), span(7)),
                Map(v("b"), "exp", (v("a"),), span(7)),
                Store(Version("s", 1), Version("s", 0), (ax("p0"),), v("b"), span(7)),
            ),
            over(
                "p1",
                Load(v("c"), Version("s", 1), (ax("p1"),), span(8)),
                Store(Version("m", 1), Version("m", 0), (ax("p1"),), v("c"), span(8)),
            ),
            over(
                "p2",
                Load(v("d"), Version("m", 1), (ax("p2"),), span(9)),
                Map(v("e"), "negate", (v("d"),), span(9)),
                store((ax("p2"),), v("e"), 10),
            ),
        ),
    )
    assert p.kind is AxisKind.PARTITION
    region = one(constructs(made), "elementwise")
    assert region.operators == ("exp", "negate")
    assert [s.start_line for s in region.spans] == [7, 9]


def test_independent_chains_of_one_input_are_apart():
    found = constructs(cuda({"out": ("exp", "x"), "d": ("negate", "x")}))
    assert [c.operators for c in find(found, "elementwise")] == [("exp",), ("negate",)]


def test_a_later_store_does_not_use_an_earlier_one():
    t = axis("t", 4, AxisKind.BLOCK)
    body = (
        Load(v("a"), Version("x", 0), (ax("t"),), span(7)),
        store((ax("t"),), v("a"), 8),
        Load(v("b"), Version("y", 0), (ax("t"),), span(9)),
        store((ax("t") + 4,), v("b"), 10, number=1),
    )
    made = kernel(
        (hbm("x", "in", 4), hbm("y", "in", 4), hbm("out", "out", 8)),
        (Parallel((t,), body, span(5)),),
        last=2,
    )
    found = constructs(made)
    first, second = find(found, "output-store")
    assert first.after == (one([c for c in found if c.tensors == ("x",)], "stage-in").id,)
    assert second.after == (one([c for c in found if c.tensors == ("y",)], "stage-in").id,)


def indexed(op, buffers=(), outs=("out",)):
    t = axis("t", 8, AxisKind.BLOCK)
    where = Load(v("w", I32), Version("w", 0), (ax("t"),), span(6))
    value = Load(v("a"), Version("x", 0), (ax("t"),), span(7))
    body = (where, value, *op)
    return kernel(
        (hbm("w", "in", 8, dtype=I32), hbm("x", "in", 8), hbm("out", "out", 8), *buffers),
        (Parallel((t,), body, span(5)),),
        outs,
    )


GATHER = indexed(
    (
        Gather(v("g"), Version("x", 0), (v("w", I32),), span(8)),
        store((ax("t"),), v("g")),
    )
)
SCATTER = indexed(
    (Scatter(Version("out", 1), Version("out", 0), (v("w", I32),), v("a"), span(8), "add"),)
)
SCAN = indexed((Scan(v("s"), "add", "t", v("a"), span(8)), store((ax("t"),), v("s"))))
RANDOM = indexed(
    (Random(v("r"), "uniform", (v("a"),), ax("t"), span(8)), store((ax("t"),), v("r")))
)
NOT_READ = indexed(
    (
        Opaque((v("o"),), (v("a"),), "asm volatile", "inline assembly", span(8)),
        store((ax("t"),), v("o")),
    )
)


@pytest.mark.parametrize(
    ("made", "kind", "summary", "label"),
    [
        (GATHER, "gather", "gather x", "gather/scatter/index"),
        (SCATTER, "scatter", "add into out", "gather/scatter/index"),
        (SCAN, "scan", "add along t", "scan/prefix"),
        (RANDOM, "random", "uniform", "RNG"),
        (NOT_READ, "opaque", "inline assembly", "other"),
    ],
)
def test_other_anchors(made, kind, summary, label):
    found = constructs(made)
    anchor = one(found, kind)
    assert (anchor.summary, anchor.span.start_line) == (summary, 8)
    assert computes(made) == label


def test_a_position_used_as_data_is_no_load():
    t = axis("t", 8, AxisKind.BLOCK)
    body = (
        Position(v("a"), ax("t"), span(7)),
        Map(v("b"), "sqrt", (v("a"),), span(8)),
        store((ax("t"),), v("b")),
    )
    made = kernel((hbm("out", "out", 8),), (Parallel((t,), body, span(5)),))
    assert shown(constructs(made))[1:] == [("elementwise", "sqrt"), ("output-store", "store out")]


def test_a_number_that_nobody_uses_is_no_construct():
    t = axis("t", 8, AxisKind.BLOCK)
    body = (
        Fill(v("unused"), 3.0, span(6)),
        Load(v("a"), Version("x", 0), (ax("t"),), span(7)),
        store((ax("t"),), v("a")),
    )
    made = kernel((hbm("x", "in", 8), hbm("out", "out", 8)), (Parallel((t,), body, span(5)),))
    assert find(constructs(made), "constant") == []


def test_a_long_unrolled_kernel_is_read_once_through():
    p = axis("p", 4, AxisKind.PARTITION)
    ops = []
    previous = Version("s", 0)
    for number in range(3000):
        via = (Frame(kind="call", name="step", file="k", line=3, column=1),)
        loaded, made_ = v(f"l{number}"), v(f"m{number}")
        after = Version("s", number + 1)
        ops += [
            Load(loaded, previous, (ax("p"),), span(7, via=via)),
            Map(made_, "exp", (loaded,), span(7, via=via)),
            Store(after, previous, (ax("p"),), made_, span(7, via=via)),
        ]
        previous = after
    last = v("last")
    ops += [Load(last, previous, (ax("p"),), span(8)), store((ax("p"),), last)]
    made = kernel(
        (hbm("out", "out", 4), scratch("s", Space.ONCHIP, 4)),
        (Parallel((p,), tuple(ops), span(5)),),
    )
    region = one(constructs(made), "elementwise")
    assert len(region.operators) == 3000
    assert region.spans == (span(7, via=via),)


# -- census ------------------------------------------------------------------------------------


def strided():
    n = Index.size("n")
    grid, block = axis("b", 4, AxisKind.GRID), axis("t", 64, AxisKind.BLOCK)
    steps = axis("k", ceil_div(n, 256), AxisKind.PARALLEL)
    at_ = ax("k") * 256 + ax("b") * 64 + ax("t")
    body = (
        Load(v("a"), Version("x", 0), (at_,), span(7), less(at_, n)),
        Map(v("c"), "exp", (v("a"),), span(8)),
        store((at_,), v("c"), where=less(at_, n)),
    )
    return kernel(
        (hbm("x", "in", n), hbm("out", "out", n)),
        (Parallel((grid, block), (Parallel((steps,), body, span(6)),), span(5)),),
    )


def softmax():
    """A row a block: its maximum and its sum over the threads, then every element."""
    row, t = axis("b", 6, AxisKind.GRID), axis("t", 8, AxisKind.BLOCK)

    def element(name, index):
        return Load(v(name), Version("x", 0), (ax("b"), index), span(7))

    over = axis("u", 8, AxisKind.BLOCK)
    again = axis("w", 8, AxisKind.BLOCK)
    body = (
        Reduce(v("m"), "maximum", (over,), (element("a", ax("u")),), v("a"), span(8)),
        Reduce(
            v("s"),
            "add",
            (again,),
            (
                element("c", ax("w")),
                Map(v("d"), "subtract", (v("c"), v("m")), span(9)),
                Map(v("e"), "exp", (v("d"),), span(9)),
            ),
            v("e"),
            span(9),
        ),
        element("f", ax("t")),
        Map(v("g"), "subtract", (v("f"), v("m")), span(10)),
        Map(v("h"), "exp", (v("g"),), span(10)),
        Map(v("i"), "divide", (v("h"), v("s")), span(10)),
        Barrier("block", span(10)),
        store((ax("b"), ax("t")), v("i")),
    )
    return kernel(
        (hbm("x", "in", 6, 8), hbm("out", "out", 6, 8)), (Parallel((row, t), body, span(5)),)
    )


def stencil():
    t = axis("t", 6, AxisKind.BLOCK)
    loads = [Load(v(f"a{d}"), Version("x", 0), (ax("t") + d,), span(7)) for d in range(3)]
    body = (
        *loads,
        Map(v("b"), "add", (v("a0"), v("a1")), span(8)),
        Map(v("c"), "add", (v("b"), v("a2")), span(8)),
        store((ax("t"),), v("c")),
    )
    return kernel((hbm("x", "in", 8), hbm("out", "out", 6)), (Parallel((t,), body, span(5)),))


def unrolled():
    t = axis("t", 2, AxisKind.BLOCK)
    body = []
    for d in range(4):
        here = (ax("t") * 4 + d,)
        body += [
            Load(v(f"a{d}"), Version("x", 0), here, span(7)),
            Map(v(f"b{d}"), "exp", (v(f"a{d}"),), span(8)),
            store(here, v(f"b{d}"), number=d),
        ]
    made = (Parallel((t,), tuple(body), span(5)),)
    return kernel((hbm("x", "in", 8), hbm("out", "out", 8)), made, last=4)


def transposed():
    i, j = axis("i", 4, AxisKind.GRID), axis("j", 6, AxisKind.BLOCK)
    body = (
        Load(v("a"), Version("x", 0), (ax("i"), ax("j")), span(7)),
        store((ax("j"), ax("i")), v("a")),
    )
    return kernel(
        (hbm("x", "in", 4, 6), hbm("out", "out", 6, 4)), (Parallel((i, j), body, span(5)),)
    )


def unread():
    made = cuda({"out": ("add", "x", "y")})
    return kernel(made.buffers, made.body, last=2, coverage=0.1)


MAP = cuda({"out": ("add", "x", "y")})


@pytest.mark.parametrize(
    ("made", "what", "how"),
    [
        (MAP, "elementwise", "thread per element, 1-D"),
        (nki({"out": ("add", "x", "y")}, 84), "elementwise", "block tile 1-D"),
        (nki({"out": ("add", "x", "y")}, 6), "elementwise", "single block"),
        (strided(), "elementwise", "grid-stride loop"),
        (unrolled(), "elementwise", "thread per element, 1-D"),
        (reduction_nki(6, 5), "row/full reduce", "single block"),
        (softmax(), "softmax/norm", "block per row"),
        (stencil(), "conv/pool/stencil", "thread per element, 1-D"),
        (transposed(), "transpose/permute", "thread per element, 1-D"),
        (unread(), "other", "other"),
    ],
)
def test_census(made, what, how):
    assert (computes(made), work_mapping(made)) == (what, how)
