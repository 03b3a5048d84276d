// Packs: neighbouring elements of an array that one load or store of up to 16 bytes moves. Internal
// to x.cu.
//
// A pack keeps the memory representation of its elements, so that many loads can be in flight in
// few registers. It is stored with inline PTX: the compiler sometimes splits a 16-byte store and
// does not merge the parts again.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/op/primitive/element.h"

namespace cistern::op {

// The 1, 2 or 4 words of one load or store, for an array of any type.
template <unsigned kWords>
struct [[gnu::may_alias]] alignas(4 * kWords) Words {
  uint32_t word[kWords];
};

template <unsigned kWords>
__device__ inline void StoreWords(const Words<kWords>& from, void* to) {
#ifdef __CUDA_ARCH__
  const size_t at = __cvta_generic_to_global(to);
  if constexpr (kWords == 4) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(from.word[0]),
                 "r"(from.word[1]), "r"(from.word[2]), "r"(from.word[3])
                 : "memory");
  } else if constexpr (kWords == 2) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(from.word[0]), "r"(from.word[1])
                 : "memory");
  } else {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(from.word[0]) : "memory");
  }
#else
  *static_cast<Words<kWords>*>(to) = from;
#endif
}

// kCount elements of kBytes bytes in total, aligned to kBytes.
template <typename T, unsigned kCount>
struct Pack {
  static constexpr unsigned kBytes = kCount * sizeof(T);
  static constexpr unsigned kInWord = 4 / sizeof(T);
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);

  __device__ static Pack Load(const T* from) {
    return {*reinterpret_cast<const Words<kBytes / 4>*>(from)};
  }
  __device__ void Store(T* to) const { StoreWords(words, to); }

  // e must be a compile-time constant after unrolling: it indexes registers.
  __device__ float operator[](unsigned e) const {
    const uint32_t word = words.word[e / kInWord];
    if constexpr (sizeof(T) == 4) {
      return __builtin_bit_cast(float, word);
    } else if constexpr (sizeof(T) == 2) {
      T element;
      element.bits = static_cast<HalfBits>(word >> (e % kInWord * 16));
      return element;
    } else {
      return static_cast<float>(word >> (e % kInWord * 8) & 0xFF);
    }
  }
  // Sets element e. Call it once per element, in ascending order.
  __device__ void Set(unsigned e, float value) {
    uint32_t& word = words.word[e / kInWord];
    if constexpr (sizeof(T) == 4) {
      word = __builtin_bit_cast(uint32_t, value);
    } else {
      const uint32_t bits = T(value).bits;
      word = e % kInWord == 0 ? bits : word | bits << 16;
    }
  }

  Words<kBytes / 4> words;
};

// A pack of one element.
template <typename T>
struct Pack<T, 1> {
  __device__ static Pack Load(const T* from) { return {*from}; }
  __device__ void Store(T* to) const { *to = element; }
  __device__ float operator[](unsigned) const { return element; }
  __device__ void Set(unsigned, float value) { element = value; }

  T element;
};

// Whether `x` is aligned to packs of `bytes` bytes.
inline bool HoldsPacks(const void* x, size_t bytes) {
  return reinterpret_cast<uintptr_t>(x) % bytes == 0;
}

}  // namespace cistern::op
