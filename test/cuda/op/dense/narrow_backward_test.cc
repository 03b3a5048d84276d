#include "cuda/op/dense/narrow_backward.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

// dweight [k, n], then dbias [n], by the formula.
Doubles NarrowGradients(const Doubles& x, const Doubles& y, const Doubles& dy, size_t b, size_t k,
                        size_t n) {
  Doubles sums((k + 1) * n, 0.0);
  for (size_t r = 0; r < b; ++r) {
    for (size_t c = 0; c < n; ++c) {
      const double g = y[r * n + c] > 0 ? dy[r * n + c] : 0.0;
      for (size_t e = 0; e < k; ++e) sums[e * n + c] += x[r * k + e] * g;
      sums[k * n + c] += g;
    }
  }
  return sums;
}

class NarrowBackwardTest : public HalfOpTest {
 protected:
  size_t inputs() const { return std::min(k(), kMaxNarrowInputs); }
  Floats Scratch(ElementType type) {
    return Floats(NarrowBackwardScratchFloats(type, b(), inputs(), n()), kUnset);
  }
  // The gradients of floats, read as `type` reads them.
  void ExpectGradients(ElementType type, ConstValues x, ConstValues y, Values dy,
                       const Doubles& expected) {
    Floats dweight(inputs() * n(), kUnset), dbias(n(), kUnset), scratch = Scratch(type);
    NarrowBackward(x, y, dy, dweight.data(), dbias.data(), b(), inputs(), n(), scratch.data(),
                   stream());
    const auto weights = expected.begin() + static_cast<std::ptrdiff_t>(inputs() * n());
    ExpectNear(Doubles(expected.begin(), weights), dweight, 2e-5);
    ExpectNear(Doubles(weights, expected.end()), dbias, 2e-5);
  }
};

TEST_P(NarrowBackwardTest, SumsWhatTheReluLetsPass) {
  const Doubles x = Random(b() * inputs()), y = Random(b() * n()), dy = Random(b() * n());
  Floats grad(dy);
  ExpectGradients(ElementType::kFloat, Floats(x).data(), Floats(y).data(), grad.data(),
                  NarrowGradients(x, y, dy, b(), inputs(), n()));
  ForTypes([&](ElementType type) {
    const Typed in = RandomOf(type, b() * inputs()), out = RandomOf(type, b() * n());
    Typed half_grad = RandomOf(type, b() * n());
    const Doubles expected =
        NarrowGradients(in.Read(), out.Read(), half_grad.Read(), b(), inputs(), n());
    ExpectGradients(type, in.half(), out.half(), half_grad.half(), expected);
  });
}

TEST_P(NarrowBackwardTest, NeedsNoBias) {
  const Doubles x = Random(b() * inputs()), y = Random(b() * n()), dy = Random(b() * n());
  Doubles expected = NarrowGradients(x, y, dy, b(), inputs(), n());
  expected.resize(inputs() * n());
  Floats dweight(expected.size(), kUnset), grad(dy), scratch = Scratch(ElementType::kFloat);
  NarrowBackward(Floats(x).data(), Floats(y).data(), grad.data(), dweight.data(), nullptr, b(),
                 inputs(), n(), scratch.data(), stream());
  ExpectNear(expected, dweight, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, NarrowBackwardTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
