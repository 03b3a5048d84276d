// ReLU and dropout, alone and fused.
#include "common/base/philox.h"
#include "cuda/op/dense/dropout.h"
#include "cuda/op/dense/relu.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kActivationTolerance = 1e-6;

// Whether element (row, column) is kept, by the definition in dropout.h.
bool IsKept(const DropoutDraw& draw, size_t n, size_t row, size_t column) {
  const PhiloxBlock block = Philox(draw.seed, row * ((n + 7) / 8) + column / 8, draw.sequence);
  const uint32_t word = block.word[column % 8 / 2];
  const uint32_t half = column % 2 == 0 ? word & 0xFFFF : word >> 16;
  return 1.0 - (half + 1) / 65536.0 >= static_cast<double>(draw.rate);
}

class ActivationTest : public OpTest {
 protected:
  // The matrix is [b, k * n]: rows of every width.
  size_t width() const { return k() * n(); }
};

TEST_P(ActivationTest, ReluCutsAtZero) {
  Doubles x = Random(b() * width());
  if (!x.empty()) x[0] = 0.0;
  Floats y(x.size(), kUnset);
  Relu(Floats(x).data(), y.data(), x.size(), stream());
  Doubles expected = x;
  for (double& v : expected) v = std::max(v, 0.0);
  ExpectNear(expected, y, 0);

  const Doubles dy = Random(x.size());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(x.size(), write);
    ReluBackward(y.data(), Floats(dy).data(), write, dx.data(), x.size(), stream());
    Doubles gradient(x.size());
    for (size_t i = 0; i < x.size(); ++i) gradient[i] = Base(write) + (x[i] > 0 ? dy[i] : 0.0);
    ExpectNear(gradient, dx, kActivationTolerance);
  }
}

TEST_P(ActivationTest, ReluKeepsNan) {
  Floats x(b() * width(), NAN);
  Relu(x.data(), x.data(), x.size(), stream());
  for (const float v : x.Read()) ASSERT_TRUE(std::isnan(v));
}

TEST_P(ActivationTest, DropoutFollowsItsDraw) {
  const Doubles x = Random(b() * width());
  const Doubles dy = Random(x.size());
  for (const float rate : {0.0f, 0.2f, 0.5f, 0.97f}) {
    const DropoutDraw draw = {rate, 0x123456789ABCDEFull, 0x7000000042ull};
    Floats y(x.size(), kUnset);
    Array<uint8_t> mask(x.size(), 7);
    Dropout(Floats(x).data(), draw, y.data(), mask.data(), b(), width(), stream());
    Doubles expected(x.size()), gradient(x.size());
    const std::vector<uint8_t>& kept_of = mask.Read();
    for (size_t i = 0; i < x.size(); ++i) {
      const bool kept = IsKept(draw, width(), i / width(), i % width());
      ASSERT_EQ(kept, kept_of[i]) << i;
      const double factor = kept ? 1 / (1 - static_cast<double>(rate)) : 0.0;
      expected[i] = x[i] * factor;
      gradient[i] = dy[i] * factor;
    }
    ExpectNear(expected, y, kActivationTolerance);
    for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
      Floats dx = Gradient(x.size(), write);
      DropoutBackward(Floats(dy).data(), mask.data(), rate, write, dx.data(), b(), width(),
                      stream());
      Doubles sum = gradient;
      for (double& v : sum) v += Base(write);
      ExpectNear(sum, dx, kActivationTolerance);
    }
  }
}

TEST_P(ActivationTest, ReluDropoutIsReluThenDropout) {
  const DropoutDraw draw = {0.3f, 7, 9};
  const Floats x(Random(b() * width())), dy(Random(b() * width()));
  Floats cut(x.size()), expected(x.size()), fused(x.size(), kUnset);
  Array<uint8_t> mask(x.size());
  Relu(x.data(), cut.data(), x.size(), stream());
  Dropout(cut.data(), draw, expected.data(), mask.data(), b(), width(), stream());
  ReluDropout(x.data(), draw, fused.data(), b(), width(), stream());
  EXPECT_EQ(expected.Read(), fused.Read());

  Floats between(x.size()), gradient(x.size()), fused_gradient(x.size(), kUnset);
  DropoutBackward(dy.data(), mask.data(), draw.rate, Write::kOverwrite, between.data(), b(),
                  width(), stream());
  ReluBackward(cut.data(), between.data(), Write::kOverwrite, gradient.data(), x.size(), stream());
  ReluDropoutBackward(fused.data(), dy.data(), draw.rate, Write::kOverwrite, fused_gradient.data(),
                      x.size(), stream());
  EXPECT_EQ(gradient.Read(), fused_gradient.Read());
}

// The share of elements that a draw keeps, over a matrix of `rows` rows of 1000.
double KeptShare(const DropoutDraw& draw, size_t rows, std::vector<uint8_t>* mask) {
  Stream stream;
  std::vector<float> x(rows * 1000, 1.0f), y(x.size());
  mask->assign(x.size(), 0);
  Dropout(x.data(), draw, y.data(), mask->data(), rows, 1000, stream);
  return static_cast<double>(std::count(mask->begin(), mask->end(), 1)) /
         static_cast<double>(x.size());
}

TEST(Dropout, KeepsTheExpectedShare) {
  std::vector<uint8_t> mask;
  for (const double rate : {0.1, 0.2, 0.5, 0.9}) {
    const double share = KeptShare({static_cast<float>(rate), 1, 2}, 1000, &mask);
    const double sigma = std::sqrt(rate * (1 - rate) / 1e6);
    EXPECT_NEAR(share, 1 - rate, 5 * sigma + 1.0 / 65536) << rate;
  }
}

TEST(Dropout, RepeatsForTheSameDrawAndDiffersForAnother) {
  std::vector<uint8_t> first, again, other_step, other_seed;
  KeptShare({0.5f, 1, 2}, 100, &first);
  KeptShare({0.5f, 1, 2}, 100, &again);
  KeptShare({0.5f, 1, 3}, 100, &other_step);
  KeptShare({0.5f, 2, 2}, 100, &other_seed);
  EXPECT_EQ(first, again);
  const auto agreement = [&](const std::vector<uint8_t>& other) {
    size_t same = 0;
    for (size_t i = 0; i < first.size(); ++i) same += first[i] == other[i];
    return static_cast<double>(same) / static_cast<double>(first.size());
  };
  EXPECT_NEAR(agreement(other_step), 0.5, 0.01);
  EXPECT_NEAR(agreement(other_seed), 0.5, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
