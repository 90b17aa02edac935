"""The semantic IR: one language for what a CUDA kernel and an NKI kernel compute.

::

    kernel    = Kernel(name, side, span, sizes, buffers, body, outputs, statements)
    buffer    = Buffer(name, shape: index*, dtype, space, role, span)
    output    = Output(buffer, version, position)
    block     = op*

    -- regions: ops that contain blocks
    op        = Parallel(axes: axis*, where, body)         -- all points at once
              | Fold(axes: axis*, state: state*, body)     -- points in order, state carried
              | Guard(condition: predicate | value, body, otherwise, merges: merge*)
              | Reduce(value, operator, axes: axis*, body, arg, where, initial?)
              | Contract(value, axes: axis*, body, left, right, where, initial?)
    state     = State(result, initial, inner, next)        -- values or versions
    merge     = Merge(result, then, otherwise)             -- values or versions

    -- memory: a store makes a new version of its buffer
              | Load(value, version, index*, where)
              | Store(version', version, index*, value, where, mask?)
              | Gather(value, version, (index | value)*, where)
              | Scatter(version', version, (index | value)*, value, combine?, where, mask?)
              | AsyncCopy(version', version, index*, version, index*, where)

    -- values: one number at every point of the axes in scope
              | Map(value, operator, value*)
              | Cast(value, value, rounding)
              | Select(value, condition: predicate | value, then, otherwise)
              | Fill(value, number)
              | Position(value, index)                     -- an index used as data
              | Scan(value, operator, axis, value, inclusive)
              | Transpose(value, value, renames: (axis, axis)*)
              | Random(value, distribution, seed*, index)
              | Barrier(scope)
              | Opaque(results*, args*, text, reason)

    axis      = Axis(name, extent: index, kind, span, sources: span*)
    index     = sum of coefficient * atom*                 -- `ir.index`, canonical
    atom      = symbol | index // index | min(index*) | max(index*)
    predicate = index >= 0 | index == 0 | index != 0 | all of | any of
    value     = Value(name, dtype)        version = Version(buffer, number)

Reading it.  A *value* is a number at every point of the axes in scope.  A *version* is
the whole content of a buffer at one moment; version 0 is what the kernel was given (for
a scratch or output buffer: nothing, reading it is a fault).  State is explicit: a
`Store` yields the next version, a `Fold` carries versions and values round its loop, a
`Guard` merges them.  `Fold` is the general recurrence; `Reduce`, `Scan` and `Contract`
are special cases of it that a lifter found, or a pass recognised.

Within `Parallel` every statement is done for all points before the next one starts.
Reading what another point wrote is meaningful only across a `Barrier`; two points that
write different numbers to one cell in one statement are a conflict.

Every op, axis and buffer has a span; `sources` are the places whose integers decide an
extent or an index, nearest first.
"""
