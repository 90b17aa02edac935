"""What is defined before a file is read: nvcc for compute capability 8.0, and library words."""

from __future__ import annotations

from functools import cache
from typing import Final

from migrate.cuda.macros import Macro, given

# What nvcc defines (CUDA Compiler Driver NVCC, "NVCC Identification Macros") for compute
# capability 8.0, the gcc words that real files ask for, and function-like words of compilers
# and well-known libraries that say nothing about a kernel's meaning or stand for a loop head
# or a qualifier.  A file's own definition replaces them.
PREDEFINED: Final[tuple[str, ...]] = (
    "__CUDACC__ 1",
    "__NVCC__ 1",
    "__CUDA_ARCH__ 800",
    "__cplusplus 201703L",
    "__CUDACC_VER_MAJOR__ 12",
    "__CUDACC_VER_MINOR__ 4",
    "CUDART_VERSION 12040",
    "CUDA_VERSION 12040",
    "__GNUC__ 11",
    "__linux__ 1",
    "__x86_64__ 1",
    "__align__(n) alignas(n)",
    "__attribute__(x)",
    "__declspec(x)",
    "__cluster_dims__(...)",
    "__maxnreg__(n)",
    "__block_size__(...)",
    "__restrict __restrict__",
    "__extension__",
    "__typeof__ decltype",
    "__typeof decltype",
    "typeof decltype",
    # PyTorch, c10/macros/Macros.h; CUTLASS, cutlass/detail/helper_macros.hpp and
    # cute/config.hpp; HIP, hip_runtime.h.
    "C10_LAUNCH_BOUNDS_0 __launch_bounds__(1024)",
    "C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)",
    "C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)",
    "C10_HOST_DEVICE __host__ __device__",
    "C10_DEVICE __device__",
    "C10_HOST __host__",
    "CUTLASS_DEVICE __forceinline__ __device__",
    "CUTLASS_HOST_DEVICE __forceinline__ __host__ __device__",
    "CUTE_DEVICE __forceinline__ __device__",
    "CUTE_HOST_DEVICE __forceinline__ __host__ __device__",
    "CUTE_UNROLL",
    "CUTE_NO_UNROLL",
    "CUTLASS_PRAGMA_UNROLL",
    "CUTLASS_PRAGMA_NO_UNROLL",
    # CUDA, cooperative_groups/details/info.h, for 64-bit code.
    '_CG_ASM_PTR_CONSTRAINT "l"',
    # stdint.h
    "INT8_C(x) x",
    "INT16_C(x) x",
    "INT32_C(x) x",
    "INT64_C(x) x##LL",
    "UINT8_C(x) x",
    "UINT16_C(x) x",
    "UINT32_C(x) x##U",
    "UINT64_C(x) x##ULL",
    "HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];",
    # The grid-stride loop heads of Caffe's device_alternate.hpp and its descendants
    # (c10/cuda/CUDALoops.cuh counts in 64 bits).
    (
        "CUDA_KERNEL_LOOP(index, count) for (int index = blockIdx.x * blockDim.x + threadIdx.x;"
        " index < (count); index += blockDim.x * gridDim.x)"
    ),
    (
        "CUDA_1D_KERNEL_LOOP(index, count) for (int index = blockIdx.x * blockDim.x + threadIdx.x;"
        " index < (count); index += blockDim.x * gridDim.x)"
    ),
    (
        "CUDA_KERNEL_LOOP_TYPE(index, count, type) for (type index = (type)blockIdx.x * blockDim.x"
        " + threadIdx.x; index < (count); index += blockDim.x * gridDim.x)"
    ),
    # sys/param.h
    "MIN(a, b) (((a) < (b)) ? (a) : (b))",
    "MAX(a, b) (((a) > (b)) ? (a) : (b))",
)


@cache
def predefined() -> dict[bytes, Macro]:
    """The macros of `PREDEFINED` by name."""
    found = [given("", line) for line in PREDEFINED]
    return {macro.name: macro for macro in found if macro is not None}
