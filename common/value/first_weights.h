// Initial weights of a new row: a pure function of (seed, key, position), the same on servers, on
// the worker's CPU and on the GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"
#include "common/base/philox.h"
#include "common/base/types.h"

namespace cistern {

namespace v1 {
class Initializer;
}

// A table's initializer: plain data, copied into kernels.
struct FirstWeights {
  enum class Kind : int32_t { kZero, kUniform, kNormal, kSlotUniform };
  Kind kind = Kind::kZero;
  float range = 0;  // half the width (uniform), the standard deviation (normal)
  uint64_t seed = 0;
  // kSlotUniform: the number of keys of each slot, [slot_num]. Borrowed; in the memory of the
  // device that reads it.
  const uint64_t* slot_sizes = nullptr;
  uint32_t slot_num = 0;
};

// slot_sizes points into `initializer`.
FirstWeights MakeFirstWeights(const v1::Initializer& initializer, uint64_t seed);

// Half the width of the distribution for `key`. kSlotUniform: sqrt(1 / slot_size) for the slot that
// contains the key (HugeCTR 2.3, data_simulator.hpp), or `range` if no slot does.
CISTERN_HOST_DEVICE inline float RangeOf(const FirstWeights& first, Key key) {
  if (first.kind != FirstWeights::Kind::kSlotUniform) return first.range;
  for (uint32_t s = 0; s < first.slot_num; ++s) {
    const uint64_t size = first.slot_sizes[s];
    if (key < size) return static_cast<float>(sqrt(1.0 / static_cast<double>(size)));
    key -= size;
  }
  return first.range;
}

// Writes the initial weights of `key` to out[0 .. n): block j of the generator yields cells
// 4j .. 4j+3 (uniform) or 2j, 2j+1 (normal). Several threads may share the work: each writes the
// blocks part, part + parts, ...
CISTERN_HOST_DEVICE inline void FillWeights(const FirstWeights& first, Key key, uint32_t n,
                                            float* out, uint32_t part = 0, uint32_t parts = 1) {
  constexpr uint64_t kWeightStream = 0;  // so that fields of one key never share bits
  const float range = RangeOf(first, key);
  switch (first.kind) {
    case FirstWeights::Kind::kUniform:
    case FirstWeights::Kind::kSlotUniform:
      for (uint32_t i = 4 * part; i < n; i += 4 * parts) {
        const PhiloxBlock bits = Philox(first.seed, key, (uint64_t{i / 4} << 8) | kWeightStream);
        for (uint32_t j = i; j < n && j < i + 4; ++j) {
          out[j] = (2.0f * UniformFromBits(bits.word[j - i]) - 1.0f) * range;
        }
      }
      return;
    case FirstWeights::Kind::kNormal:
      for (uint32_t i = 2 * part; i < n; i += 2 * parts) {
        const PhiloxBlock bits = Philox(first.seed, key, (uint64_t{i / 2} << 8) | kWeightStream);
        for (uint32_t j = i; j < n && j < i + 2; ++j) {
          const uint32_t k = 2 * (j - i);
          out[j] = NormalFromBits(bits.word[k], bits.word[k + 1]) * range;
        }
      }
      return;
    case FirstWeights::Kind::kZero:
      for (uint32_t i = part; i < n; i += parts) out[i] = 0.0f;
  }
}

}  // namespace cistern
