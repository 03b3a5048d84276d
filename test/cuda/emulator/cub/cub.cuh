// The subset of CUB that the kernels of cuda/ use, run on the CPU. It replaces the toolkit's header
// of this name, as cuda_runtime.h does.
//
// Calls have CUB's argument order and protocol: with temporary = null a call returns the size of
// its temporary storage; otherwise it enqueues work, which runs as late as a kernel. Too little
// storage is an error. Contents that a caller must not rely on are destroyed: a call overwrites its
// temporary storage, and the array of a DoubleBuffer that does not hold the result.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "test/cuda/emulator/cuda_runtime.h"

namespace cub {

namespace emulated {

inline constexpr int kGarbage = 0xA7;

// size: the size of an element; the temporary storage has about `count` of them.
template <typename Run>
cudaError_t Call(void* temporary, size_t& bytes, size_t count, size_t size, cudaStream_t stream,
                 Run run) {
  const size_t needed = count * size + 513;
  if (temporary == nullptr) {
    bytes = needed;
    return cudaSuccess;
  }
  if (bytes < needed) return cudaErrorInvalidValue;
  // CUB checks for errors after its launches, and finds earlier ones too.
  if (cudaPeekAtLastError() != cudaSuccess) return cudaPeekAtLastError();
  return cistern::emulator::Launch(stream, [temporary, needed, run = std::move(run)] {
    std::memset(temporary, kGarbage, needed);
    run();
    std::memset(temporary, kGarbage, needed);
  });
}

template <typename T>
bool Overlap(const T* a, size_t a_count, const T* b, size_t b_count) {
  return std::less<>()(a, b + b_count) && std::less<>()(b, a + a_count);
}

template <typename Key>
auto LessByBits(int begin_bit, int end_bit) {
  return [=](Key a, Key b) {
    const uint64_t mask =
        end_bit - begin_bit >= 64 ? ~uint64_t{0} : (uint64_t{1} << (end_bit - begin_bit)) - 1;
    return (uint64_t{a} >> begin_bit & mask) < (uint64_t{b} >> begin_bit & mask);
  };
}

}  // namespace emulated

template <typename T>
struct DoubleBuffer {
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }

  T* d_buffers[2] = {};
  int selector = 0;
};

struct DeviceRadixSort {
  // The selector names the array with the result when the call returns; here it is the second array
  // if the number of keys is odd.
  template <typename Key>
  static cudaError_t SortKeys(void* temporary, size_t& bytes, DoubleBuffer<Key>& keys,
                              int signed_count, int begin_bit, int end_bit, cudaStream_t stream) {
    const auto count = static_cast<size_t>(signed_count);
    Key *from = keys.Current(), *to = keys.Alternate();
    const bool moves = count % 2 == 1;
    if (temporary != nullptr && moves) keys.selector ^= 1;
    return emulated::Call(temporary, bytes, 1, 1, stream, [=] {
      std::stable_sort(from, from + count, emulated::LessByBits<Key>(begin_bit, end_bit));
      std::memcpy(to, from, count * sizeof(Key));
      std::memset(moves ? from : to, emulated::kGarbage, count * sizeof(Key));
    });
  }
  template <typename Key, typename Value>
  static cudaError_t SortPairs(void* temporary, size_t& bytes, const Key* keys, Key* sorted_keys,
                               const Value* values, Value* sorted_values, int signed_count,
                               int begin_bit, int end_bit, cudaStream_t stream) {
    const auto count = static_cast<size_t>(signed_count);
    const size_t size = sizeof(Key) + sizeof(Value);
    return emulated::Call(temporary, bytes, count, size, stream, [=] {
      std::vector<std::pair<Key, Value>> pairs(count);
      for (size_t i = 0; i < count; ++i) pairs[i] = {keys[i], values[i]};
      const auto less = emulated::LessByBits<Key>(begin_bit, end_bit);
      std::stable_sort(pairs.begin(), pairs.end(),
                       [less](const auto& a, const auto& b) { return less(a.first, b.first); });
      for (size_t i = 0; i < count; ++i) {
        sorted_keys[i] = pairs[i].first;
        sorted_values[i] = pairs[i].second;
      }
    });
  }
};

struct DeviceSelect {
  // Elements past the distinct ones are undefined, and so is the count if there are no keys.
  template <typename Key, typename Selected>
  static cudaError_t Unique(void* temporary, size_t& bytes, const Key* keys, Key* distinct,
                            Selected* distinct_count, int signed_count, cudaStream_t stream) {
    const auto count = static_cast<size_t>(signed_count);
    if (temporary != nullptr && emulated::Overlap(keys, count, distinct, count))
      return cudaErrorInvalidValue;
    return emulated::Call(temporary, bytes, count / 1024, 8, stream, [=] {
      if (count == 0) return;
      std::memset(distinct, emulated::kGarbage, count * sizeof(Key));
      *distinct_count =
          static_cast<Selected>(std::unique_copy(keys, keys + count, distinct) - distinct);
    });
  }
  template <typename Key, typename Flag, typename Selected>
  static cudaError_t Flagged(void* temporary, size_t& bytes, const Key* keys, const Flag* flags,
                             Key* flagged, Selected* flagged_count, int signed_count,
                             cudaStream_t stream) {
    const auto count = static_cast<size_t>(signed_count);
    if (temporary != nullptr && emulated::Overlap(keys, count, flagged, count))
      return cudaErrorInvalidValue;
    return emulated::Call(temporary, bytes, count / 1024, 8, stream, [=] {
      if (count == 0) return;
      std::memset(flagged, emulated::kGarbage, count * sizeof(Key));
      size_t found = 0;
      for (size_t i = 0; i < count; ++i) {
        if (flags[i]) flagged[found++] = keys[i];
      }
      *flagged_count = static_cast<Selected>(found);
    });
  }
};

struct DeviceScan {
  // sums may alias counts.
  template <typename T>
  static cudaError_t InclusiveSum(void* temporary, size_t& bytes, const T* counts, T* sums,
                                  int signed_count, cudaStream_t stream) {
    const auto count = static_cast<size_t>(signed_count);
    return emulated::Call(temporary, bytes, count / 1024, 8, stream, [=] {
      T sum = 0;
      for (size_t i = 0; i < count; ++i) sums[i] = sum = static_cast<T>(sum + counts[i]);
    });
  }
};

}  // namespace cub
