"""What CUDA's device libraries mean, one library a file.

Nearly everything is said in expressions and statements that exist already, so that the executor
and the lifter see nothing new: `tile.thread_rank()` is arithmetic on `threadIdx`, `cg::reduce` a
tree of shuffles, `cub::BlockReduce` shuffles and shared memory.  What takes more than an
expression is written in CUDA itself, read by this reader and called like a device function of
the file (`text`).  New kinds of node are only these, in `migrate.cuda.ast`:

* `WarpContract`: d = a b + c by a warp together, each matrix spread over registers by a layout
  (`layout`); tensor core instructions and `wmma::mma_sync` are this.
* `AsyncCopy` and `AsyncGroup`: a copy that is there after a wait.

| module | library |
| --- | --- |
| `groups` | cooperative groups |
| `cub` | warp and block collectives |
| `halves` | cuda_fp16.h and cuda_bf16.h |
| `wmma` | warp matrix functions |
| `ptx` | inline assembly |
| `pipeline` | asynchronous copies |
| `random` | cuRAND's device functions |

`registry` finds who answers for a name.
"""
