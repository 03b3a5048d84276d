// Typed pointers to activations: the inputs and outputs of layers and their gradients. Activations
// are float32 or, in mixed precision, 16-bit. Parameters, their gradients, statistics, sums and
// losses are always float32 or double.
//
// All activations of one call have one type unless the contract states otherwise. Ops compute in
// float32 and round once, when they store: to nearest, ties to even; values beyond the largest half
// become infinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/host_device.h"
#include "cuda/core/element_type.h"

namespace cistern::op {

// kFloat, kHalf or kBfloat16 elements at `data`. Converts from a float pointer; + advances by
// elements.
struct Values {
  Values(float* floats) : data(floats) {}
  Values(void* begin, ElementType element_type) : data(begin), type(element_type) {}

  void* data;
  ElementType type = ElementType::kFloat;

  Values operator+(size_t elements) const {
    return {static_cast<std::byte*>(data) + elements * BytesOf(type), type};
  }
  bool operator==(std::nullptr_t) const { return data == nullptr; }
};

struct ConstValues {
  ConstValues(const float* floats) : data(floats) {}
  ConstValues(const void* begin, ElementType element_type) : data(begin), type(element_type) {}
  ConstValues(const Values& values) : data(values.data), type(values.type) {}

  const void* data;
  ElementType type = ElementType::kFloat;

  ConstValues operator+(size_t elements) const {
    return {static_cast<const std::byte*>(data) + elements * BytesOf(type), type};
  }
  bool operator==(std::nullptr_t) const { return data == nullptr; }
};

// A number with one factor in device memory: value * *times.
struct DeviceFactor {
  DeviceFactor(float known, const float* on_device = nullptr) : value(known), times(on_device) {}
  CISTERN_HOST_DEVICE float product() const { return times == nullptr ? value : value * *times; }

  float value;
  const float* times;  // null: 1
};

// Gradients that are multiplied by *scale, a number in device memory, before they are rounded.
struct ScaledValues {
  ScaledValues(float* floats) : values(floats) {}
  ScaledValues(const Values& scaled, const float* by = nullptr) : values(scaled), scale(by) {}

  Values values;
  const float* scale = nullptr;  // null: 1
};

}  // namespace cistern::op
