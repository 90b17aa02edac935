"""CUB's collectives in CUDA: what `cub` calls.

`combine(a, b)` stands for the operator (`text`).
"""

from __future__ import annotations

REDUCE = """
template <typename T, int WIDTH> __device__ T warp_reduce(T value) {
  for (int distance = 1; distance < WIDTH; distance *= 2) {
    // In lane 0 this is what __shfl_down_sync gives, and no lane reads behind the end.
    T other = __shfl_xor_sync(0xffffffffu, value, distance, WIDTH);
    value = combine(value, other);
  }
  return value;
}
template <typename T, int WIDTH> __device__ T warp_reduce_some(T value, int lane, int valid) {
  for (int distance = 1; distance < WIDTH; distance *= 2) {
    T other = __shfl_sync(0xffffffffu, value, min(lane + distance, valid - 1), WIDTH);
    if (lane + distance < valid) value = combine(value, other);
  }
  return value;
}
template <typename T, int THREADS> __device__ T block_reduce(T value, int thread) {
  if constexpr (THREADS % 32 == 0) {
    __shared__ T partial[THREADS / 32];
    value = warp_reduce<T, 32>(value);
    if constexpr (THREADS > 32) {
      if (thread % 32 == 0) partial[thread / 32] = value;
      __syncthreads();
      if (thread == 0) {
        for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, partial[warp]);
      }
    }
    return value;
  } else {
    return block_reduce_some<T, THREADS>(value, thread, THREADS);
  }
}
template <typename T, int THREADS> __device__ T block_reduce_some(T value, int thread, int valid) {
  __shared__ T partial[(THREADS + 31) / 32];
  const int first = thread / 32 * 32;
  const int inside = max(min(valid - first, 32), 1);
  value = warp_reduce_some<T, 32>(value, thread - first, inside);
  if (thread == first) partial[thread / 32] = value;
  __syncthreads();
  if (thread == 0) {
    for (int warp = 1; warp < (valid + 31) / 32; ++warp) value = combine(value, partial[warp]);
  }
  return value;
}
template <typename T, int ITEMS> __device__ T own(const T* items) {
  T value = items[0];
  for (int item = 1; item < ITEMS; ++item) value = combine(value, items[item]);
  return value;
}
template <typename T, int THREADS, int ITEMS> __device__
T block_reduce_items(const T* items, int thread) {
  return block_reduce<T, THREADS>(own<T, ITEMS>(items), thread);
}
"""

# `before` of the first thread stays unset: there is nothing before it.
SCAN = """
template <typename T, int THREADS> __device__
void block_scan(T value, T& before, T& all, T& total, int thread) {
  __shared__ T partial[(THREADS + 31) / 32];
  const int lane = thread % 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    T other = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value = combine(other, value);
  }
  if (lane == 31 || thread == THREADS - 1) partial[thread / 32] = value;
  __syncthreads();
  T sum = partial[0];
  T prefix = partial[0];
  for (int warp = 1; warp < (THREADS + 31) / 32; ++warp) {
    if (warp == thread / 32) prefix = sum;
    sum = combine(sum, partial[warp]);
  }
  T previous = __shfl_up_sync(0xffffffffu, value, 1);
  if (thread < 32) {
    before = previous;
    all = value;
  } else {
    before = lane == 0 ? prefix : combine(prefix, previous);
    all = combine(prefix, value);
  }
  total = sum;
}
template <typename T, int THREADS> __device__
void inclusive(T value, T& output, int thread) {
  T before, all, total;
  block_scan<T, THREADS>(value, before, all, total, thread);
  output = all;
}
template <typename T, int THREADS> __device__
void inclusive_total(T value, T& output, T& total, int thread) {
  T before, all;
  block_scan<T, THREADS>(value, before, all, total, thread);
  output = all;
}
template <typename T, int THREADS> __device__
void exclusive(T value, T& output, T start, int thread) {
  T before, all, total;
  block_scan<T, THREADS>(value, before, all, total, thread);
  output = thread == 0 ? start : combine(start, before);
}
template <typename T, int THREADS> __device__
void exclusive_total(T value, T& output, T start, T& total, int thread) {
  T before, all;
  block_scan<T, THREADS>(value, before, all, total, thread);
  output = thread == 0 ? start : combine(start, before);
}
template <typename T> __device__ T after(T total, int thread) {
  __shared__ T start;
  if (thread < 32) {
    T mine = prefix(total);
    if (thread == 0) start = mine;
  }
  __syncthreads();
  return start;
}
template <typename T, int THREADS> __device__
void inclusive_after(T value, T& output, int thread) {
  T before, all, total;
  block_scan<T, THREADS>(value, before, all, total, thread);
  T start = after<T>(total, thread);
  output = combine(start, all);
}
template <typename T, int THREADS> __device__
void exclusive_after(T value, T& output, int thread) {
  T before, all, total;
  block_scan<T, THREADS>(value, before, all, total, thread);
  T start = after<T>(total, thread);
  output = start;
  if (thread > 0) output = combine(start, before);
}
template <typename T, int THREADS, int ITEMS> __device__
void inclusive_items_after(const T* items, T* output, int thread) {
  T before, all, total;
  T own = items[0];
  for (int item = 1; item < ITEMS; ++item) own = combine(own, items[item]);
  block_scan<T, THREADS>(own, before, all, total, thread);
  T sum = after<T>(total, thread);
  if (thread > 0) sum = combine(sum, before);
  for (int item = 0; item < ITEMS; ++item) {
    sum = combine(sum, items[item]);
    output[item] = sum;
  }
}
template <typename T, int THREADS, int ITEMS> __device__
void exclusive_items_after(const T* items, T* output, int thread) {
  T before, all, total;
  T own = items[0];
  for (int item = 1; item < ITEMS; ++item) own = combine(own, items[item]);
  block_scan<T, THREADS>(own, before, all, total, thread);
  T sum = after<T>(total, thread);
  if (thread > 0) sum = combine(sum, before);
  for (int item = 0; item < ITEMS; ++item) {
    T next = combine(sum, items[item]);
    output[item] = sum;
    sum = next;
  }
}
template <typename T, int THREADS, int ITEMS> __device__
void inclusive_items(const T* items, T* output, int thread) {
  T before, all, total;
  T own = items[0];
  for (int item = 1; item < ITEMS; ++item) own = combine(own, items[item]);
  block_scan<T, THREADS>(own, before, all, total, thread);
  T sum = items[0];
  if (thread > 0) sum = combine(before, sum);
  T next = sum;
  for (int item = 0; item < ITEMS; ++item) {
    if (item + 1 < ITEMS) next = combine(sum, items[item + 1]);
    output[item] = sum;
    sum = next;
  }
}
template <typename T, int THREADS, int ITEMS> __device__
void exclusive_items(const T* items, T* output, T start, int thread) {
  T before, all, total;
  T own = items[0];
  for (int item = 1; item < ITEMS; ++item) own = combine(own, items[item]);
  block_scan<T, THREADS>(own, before, all, total, thread);
  T sum = start;
  if (thread > 0) sum = combine(start, before);
  for (int item = 0; item < ITEMS; ++item) {
    T next = combine(sum, items[item]);
    output[item] = sum;
    sum = next;
  }
}
"""

MOVE = """
template <typename T, typename S, int STEP, int STRIDE, int ITEMS> __device__
void load(const S* from, T* items, int thread) {
  for (int item = 0; item < ITEMS; ++item) items[item] = from[thread * STEP + item * STRIDE];
}
template <typename T, typename S, int STEP, int STRIDE, int ITEMS> __device__
void load_some(const S* from, T* items, int valid, int thread) {
  for (int item = 0; item < ITEMS; ++item) {
    const int at = thread * STEP + item * STRIDE;
    if (at < valid) items[item] = from[at];
  }
}
template <typename T, typename S, int STEP, int STRIDE, int ITEMS> __device__
void load_or(const S* from, T* items, int valid, T otherwise, int thread) {
  for (int item = 0; item < ITEMS; ++item) {
    const int at = thread * STEP + item * STRIDE;
    items[item] = otherwise;
    if (at < valid) items[item] = from[at];
  }
}
template <typename T, typename S, int STEP, int STRIDE, int ITEMS> __device__
void store(S* to, const T* items, int thread) {
  for (int item = 0; item < ITEMS; ++item) to[thread * STEP + item * STRIDE] = items[item];
}
template <typename T, typename S, int STEP, int STRIDE, int ITEMS> __device__
void store_some(S* to, const T* items, int valid, int thread) {
  for (int item = 0; item < ITEMS; ++item) {
    const int at = thread * STEP + item * STRIDE;
    if (at < valid) to[at] = items[item];
  }
}
"""
