// Memory traffic: per key of the batch 32 bytes (mix, then merge) and 8 sort passes of 16; per held
// key 32, half of it in the merge and half in the selection of distinct keys. With
// `added`: 18 more per key of the batch and 8 per added key.
#include "cuda/op/key/distinct_keys.h"

#include "common/base/hash.h"
#include "cuda/core/memory.h"
#include "cuda/op/primitive/cub.cuh"

namespace cistern::op::gpu {
namespace {

constexpr char kDistinctKeys[] = "AddDistinctKeys";

__global__ void __launch_bounds__(kBlockThreads)
    MixKernel(const Key* keys, size_t count, uint64_t* mixed) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < count) mixed[i] = MixKey(keys[i]);
}

// The number of elements of `ordered` that are less than `key` (kOrEqual: less or equal).
template <bool kOrEqual>
__device__ size_t CountBelow(const uint64_t* ordered, size_t count, uint64_t key) {
  size_t begin = 0, end = count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const uint64_t found = ordered[middle];
    if (kOrEqual ? found <= key : found < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// One thread per key. A key's index in `all` is its index in its own array plus the number of
// elements of the other array that precede it; held keys come first among equals. Neighbouring
// threads search for neighbouring keys, so all but their last steps hit the L1 cache and the kernel
// is memory-bound.
__global__ void __launch_bounds__(kBlockThreads)
    MergeKernel(const uint64_t* held, size_t held_count, const uint64_t* sorted, size_t count,
                uint64_t* all) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < held_count) {
    all[i + CountBelow<false>(sorted, count, held[i])] = held[i];
  } else if (i < held_count + count) {
    const size_t k = i - held_count;
    all[k + CountBelow<true>(held, held_count, sorted[k])] = sorted[k];
  }
}

// Marks the first occurrence of each key of the batch that is not held. Searches as MergeKernel.
__global__ void __launch_bounds__(kBlockThreads)
    AddedKernel(const uint64_t* held, size_t held_count, const uint64_t* sorted, size_t count,
                uint8_t* is_added) {
  const size_t k = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (k >= count) return;
  const uint64_t key = sorted[k];
  bool is_first = k == 0 || sorted[k - 1] != key;
  if (is_first) {
    const size_t place = CountBelow<false>(held, held_count, key);
    is_first = place == held_count || held[place] != key;
  }
  is_added[k] = is_first;
}

unsigned Blocks(size_t count) {
  return static_cast<unsigned>(CeilDivide(count, kBlockThreads));
}

// The CUB steps, in the form that CubBytes and RunCub call.
auto SortKeys(cub::DoubleBuffer<uint64_t>& keys, size_t count) {
  return [&keys, count](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, static_cast<int>(count), 0, 64,
                                          stream);
  };
}
auto SelectKeys(const uint64_t* keys, size_t count, uint64_t* distinct, uint64_t* distinct_count) {
  return [=](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceSelect::Unique(temporary, bytes, keys, distinct, distinct_count,
                                     static_cast<int>(count), stream);
  };
}
auto SelectMarked(const uint64_t* keys, const uint8_t* marks, size_t count, uint64_t* marked,
                  uint64_t* marked_count) {
  return [=](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceSelect::Flagged(temporary, bytes, keys, marks, marked, marked_count,
                                      static_cast<int>(count), stream);
  };
}

struct DistinctKeysScratch {
  DistinctKeysScratch(size_t count, size_t held_count, void* scratch, Stream& stream) {
    const size_t total = held_count + count;
    if (!CubCounts(kDistinctKeys, total, stream)) return;
    cub::DoubleBuffer<uint64_t> none;
    temporary_bytes = std::max(
        {CubBytes(kDistinctKeys, stream, SortKeys(none, count)),
         CubBytes(kDistinctKeys, stream, SelectKeys(nullptr, total, nullptr, nullptr)),
         CubBytes(kDistinctKeys, stream, SelectMarked(nullptr, nullptr, count, nullptr, nullptr))});
    ScratchParts parts(scratch);
    mixed = parts.Take<uint64_t>(count);
    all = parts.Take<uint64_t>(total);
    is_added = parts.Take<uint8_t>(count);
    added_count = parts.Take<uint64_t>(1);
    temporary = parts.Take<char>(temporary_bytes);
    bytes = parts.bytes();
  }

  uint64_t* mixed = nullptr;    // [count]
  uint64_t* all = nullptr;      // [held_count + count], ordered, with duplicates
  uint8_t* is_added = nullptr;  // [count], for the sorted batch
  uint64_t* added_count = nullptr;
  void* temporary = nullptr;
  size_t temporary_bytes = 0, bytes = 0;
};

}  // namespace

void AddDistinctKeys(const Key* keys, size_t count, const uint64_t* held, size_t held_count,
                     uint64_t* merged, uint64_t* merged_count, uint64_t* added, void* scratch,
                     Stream& stream) {
  if (held_count + count == 0) return ZeroOnDevice(merged_count, sizeof(uint64_t), stream);
  const DistinctKeysScratch parts(count, held_count, scratch, stream);
  const auto run = [&](const auto& step) {
    RunCub(kDistinctKeys, parts.temporary, parts.temporary_bytes, stream, step);
  };
  Launch(kDistinctKeys, MixKernel, dim3(Blocks(count)), dim3(kBlockThreads), 0, stream, keys, count,
         parts.mixed);
  // The sort needs two buffers; the second is one that the following steps only write.
  cub::DoubleBuffer<uint64_t> sorted(parts.mixed, held_count == 0 ? parts.all : merged);
  run(SortKeys(sorted, count));
  const uint64_t* all = sorted.Current();
  if (count == 0) {
    all = held;
  } else if (held_count > 0) {
    Launch(kDistinctKeys, MergeKernel, dim3(Blocks(held_count + count)), dim3(kBlockThreads), 0,
           stream, held, held_count, sorted.Current(), count, parts.all);
    all = parts.all;
  }
  // `sorted` may alias `merged`.
  if (added != nullptr && count > 0) {
    Launch(kDistinctKeys, AddedKernel, dim3(Blocks(count)), dim3(kBlockThreads), 0, stream, held,
           held_count, sorted.Current(), count, parts.is_added);
    run(SelectMarked(sorted.Current(), parts.is_added, count, added, parts.added_count));
  }
  run(SelectKeys(all, held_count + count, merged, merged_count));
}

size_t AddDistinctKeysScratchBytes(size_t count, size_t held_count, Stream& stream) {
  return DistinctKeysScratch(count, held_count, nullptr, stream).bytes;
}

}  // namespace cistern::op::gpu
