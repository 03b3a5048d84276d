// The element types of Values as C++ types, and dispatch on them. Internal to x_cpu.cc and x.cu.
//
//   ForType(x.type, [&]<typename T>() { ReluOf(As<T>(x), As<T>(y), count); });
//
// A 16-bit element converts to float when read and rounds when assigned a float, so one template is
// the formula for all types.
#pragma once

#include "common/base/check.h"
#include "common/base/half.h"
#include "cuda/core/values.h"

namespace cistern::op {

struct Half {
  HalfBits bits;

  Half() = default;
  CISTERN_HOST_DEVICE Half(float x) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    bits = FloatToHalf(x);
#endif
  }
  CISTERN_HOST_DEVICE operator float() const {
#ifdef __CUDA_ARCH__
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#else
    return HalfToFloat(bits);
#endif
  }
  CISTERN_HOST_DEVICE Half& operator+=(float x) {
    return *this = Half(float{*this} + x);
  }
};

struct Bfloat16 {
  HalfBits bits;

  Bfloat16() = default;
  CISTERN_HOST_DEVICE Bfloat16(float x) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    bits = FloatToBfloat16(x);
#endif
  }
  CISTERN_HOST_DEVICE operator float() const {
    return Bfloat16ToFloat(bits);
  }
  CISTERN_HOST_DEVICE Bfloat16& operator+=(float x) {
    return *this = Bfloat16(float{*this} + x);
  }
};

template <typename T>
inline constexpr ElementType kTypeOf = ElementType::kFloat;
template <>
inline constexpr ElementType kTypeOf<Half> = ElementType::kHalf;
template <>
inline constexpr ElementType kTypeOf<Bfloat16> = ElementType::kBfloat16;

template <typename T>
T* As(const Values& x) {
  CISTERN_CHECK(x.type == kTypeOf<T> || x.data == nullptr);
  return static_cast<T*>(x.data);
}
template <typename T>
const T* As(const ConstValues& x) {
  CISTERN_CHECK(x.type == kTypeOf<T> || x.data == nullptr);
  return static_cast<const T*>(x.data);
}

// Calls body.template operator()<T>() with the element type.
template <typename Body>
void ForType(ElementType type, const Body& body) {
  switch (type) {
    case ElementType::kHalf:
      return body.template operator()<Half>();
    case ElementType::kBfloat16:
      return body.template operator()<Bfloat16>();
    default:
      CISTERN_CHECK(type == ElementType::kFloat);
      return body.template operator()<float>();
  }
}

}  // namespace cistern::op
