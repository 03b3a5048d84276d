// Element types of device arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cistern {

enum class ElementType : uint32_t { kFloat, kHalf, kDouble, kInt64, kBfloat16 };

constexpr size_t BytesOf(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kDouble:
    case ElementType::kInt64:
      return 8;
    case ElementType::kFloat:
      break;
  }
  return 4;
}

}  // namespace cistern
