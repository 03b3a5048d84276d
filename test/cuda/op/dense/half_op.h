// Shared by the tests of ops on 16-bit activations: 16-bit arrays paired with floats of the same
// values, and each test for both types.
//
// The expected result on 16-bit inputs is the op's result on the same floats, rounded once; the
// float op is tested against formulas in double.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "common/base/half.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {

inline HalfBits BitsOf(float x, ElementType type) {
  return type == ElementType::kHalf ? FloatToHalf(x) : FloatToBfloat16(x);
}
inline float ValueOf(HalfBits bits, ElementType type) {
  return type == ElementType::kHalf ? HalfToFloat(bits) : Bfloat16ToFloat(bits);
}

// A 16-bit array on the test's device, and an array of floats with the same values.
class Typed {
 public:
  Typed(ElementType type, const Doubles& x)
      : type_(type), bits_(Rounded(x, type)), floats_(Widened(bits_.Read(), type)) {}
  Typed(ElementType type, size_t n, float value) : Typed(type, Doubles(n, double{value})) {}

  Values half() { return {bits_.data(), type_}; }
  ConstValues half() const { return {bits_.data(), type_}; }
  float* floats() { return floats_.data(); }
  const float* floats() const { return floats_.data(); }
  size_t size() const { return bits_.size(); }
  // The values of half().
  Doubles Read() const {
    Doubles values;
    for (const HalfBits bits : bits_.Read()) values.push_back(ValueOf(bits, type_));
    return values;
  }

  // Expects half() to equal floats(), rounded. added: the largest number that a matrix product was
  // added to; cuBLASLt rounds some products before it adds them.
  void ExpectRounded(double added = 0) const {
    const std::vector<HalfBits>& bits = bits_.Read();
    const std::vector<float>& expected = floats_.Read();
    const double ulp = type_ == ElementType::kHalf ? 0x1p-11 : 0x1p-8;
    for (size_t i = 0; i < bits.size(); ++i) {
      // Two orders of adding the same floats may differ in the last bits.
      const double size = std::abs(double{expected[i]}), before = added > 0 ? size + added : 0;
      const double tolerance = (size + before) * ulp * 1.01 + 2e-6;
      ASSERT_NEAR(ValueOf(bits[i], type_), expected[i], tolerance) << "at " << i;
    }
  }

 private:
  static std::vector<HalfBits> Rounded(const Doubles& x, ElementType type) {
    std::vector<HalfBits> bits;
    for (const double v : x) bits.push_back(BitsOf(static_cast<float>(v), type));
    return bits;
  }
  static std::vector<float> Widened(const std::vector<HalfBits>& bits, ElementType type) {
    std::vector<float> floats;
    for (const HalfBits half : bits) floats.push_back(ValueOf(half, type));
    return floats;
  }

  ElementType type_;
  Array<HalfBits> bits_;
  Floats floats_;
};

// Compares results that are not rounded to 16 bits. terms: number of terms in a matrix product's
// sums; a GPU has other units for 16-bit products, which add in another order and truncate sums
// where float units round.
inline void ExpectSame(const Floats& a, const Floats& b, size_t terms = 0) {
  const std::vector<float>&x = a.Read(), &y = b.Read();
  ASSERT_EQ(x.size(), y.size());
  const double share = 2e-6 + 0x1p-24 * static_cast<double>(terms);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], y[i], share * std::max(1.0, std::abs(double{x[i]}))) << "at " << i;
  }
}

class HalfOpTest : public OpTest {
 protected:
  // Runs `test` for each type.
  template <typename Test>
  void ForTypes(const Test& test) {
    for (const ElementType type : {ElementType::kHalf, ElementType::kBfloat16}) {
      SCOPED_TRACE(type == ElementType::kHalf ? "half" : "bfloat16");
      test(type);
    }
  }
  // The same for each type and each way to write a gradient, with the gradient's previous contents.
  template <typename Test>
  void ForWrites(const Test& test) {
    ForTypes([&](ElementType type) {
      for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
        test(type, write, write == Write::kAccumulate ? kBefore : 100.0f);
      }
    });
  }
  Typed RandomOf(ElementType type, size_t count, double low = -1, double high = 1) {
    return Typed(type, Random(count, low, high));
  }
  size_t count() const { return b() * k() * n(); }
};

}  // namespace cistern::op
