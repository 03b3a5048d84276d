// Layer normalization, of floats and of 16-bit elements.
#include "cuda/op/dense/layer_norm.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr float kLayerNormEps = 1e-3f;

// The matrix is [b, k * n].
class LayerNormTest : public HalfOpTest {
 protected:
  size_t width() const { return k() * n(); }

  Doubles Forward(const Doubles& x, const Doubles& gamma, const Doubles& beta) const {
    Doubles y(x.size());
    const double columns = static_cast<double>(width());
    for (size_t r = 0; r < b(); ++r) {
      const double* row = x.data() + r * width();
      double mean = 0, variance = 0;
      for (size_t c = 0; c < width(); ++c) mean += row[c] / columns;
      for (size_t c = 0; c < width(); ++c) variance += std::pow(row[c] - mean, 2) / columns;
      const double deviation = std::sqrt(variance + static_cast<double>(kLayerNormEps));
      for (size_t c = 0; c < width(); ++c) {
        y[r * width() + c] = (row[c] - mean) / deviation * gamma[c] + beta[c];
      }
    }
    return y;
  }
};

TEST_P(LayerNormTest, IsItsFormulaWithTheGradientThroughTheStatistics) {
  const Doubles x = Random(count(), -2, 2), dy = Random(count());
  const Doubles gamma = Random(width(), 0.5, 2), beta = Random(width());
  const Floats input(x), grad(dy), scale(gamma), shift(beta);
  Floats y(count(), kUnset), scratch(LayerNormScratchFloats(b(), width()), kUnset);
  LayerNorm(input.data(), scale.data(), shift.data(), kLayerNormEps, y.data(), b(), width(),
            stream());
  ExpectNear(Forward(x, gamma, beta), y, 2e-6);
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write), dgamma(width(), kUnset), dbeta(width(), kUnset);
    LayerNormBackward(input.data(), scale.data(), kLayerNormEps, grad.data(), write, dx.data(),
                      dgamma.data(), dbeta.data(), b(), width(), scratch.data(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(v, gamma, beta)); }, x, dx, 1e-5,
                   Base(write));
    ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(x, v, beta)); }, gamma, dgamma,
                   1e-5);
    ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(x, gamma, v)); }, beta, dbeta,
                   1e-5);
  }
  Floats dgamma(width(), kUnset), dbeta(width(), kUnset);
  LayerNormBackward(input.data(), scale.data(), kLayerNormEps, grad.data(), Write::kOverwrite,
                    Values(nullptr), dgamma.data(), dbeta.data(), b(), width(), scratch.data(),
                    stream());
  ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(x, v, beta)); }, gamma, dgamma,
                 1e-5);
}

TEST_P(LayerNormTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count(), -2, 2), dy = RandomOf(type, count());
    const Floats gamma(Random(width(), 0.5, 2)), beta(Random(width()));
    Floats scratch(LayerNormScratchFloats(b(), width()), kUnset);
    Typed y(type, count(), 100), dx(type, count(), before);
    LayerNorm(x.half(), gamma.data(), beta.data(), kLayerNormEps, y.half(), b(), width(), stream());
    LayerNorm(x.floats(), gamma.data(), beta.data(), kLayerNormEps, y.floats(), b(), width(),
              stream());
    y.ExpectRounded();
    Floats dgamma[2] = {Floats(width(), kUnset), Floats(width(), kUnset)};
    Floats dbeta[2] = {Floats(width(), kUnset), Floats(width(), kUnset)};
    LayerNormBackward(x.half(), gamma.data(), kLayerNormEps, dy.half(), write, dx.half(),
                      dgamma[0].data(), dbeta[0].data(), b(), width(), scratch.data(), stream());
    LayerNormBackward(x.floats(), gamma.data(), kLayerNormEps, dy.floats(), write, dx.floats(),
                      dgamma[1].data(), dbeta[1].data(), b(), width(), scratch.data(), stream());
    dx.ExpectRounded();
    ExpectSame(dgamma[0], dgamma[1]);
    ExpectSame(dbeta[0], dbeta[1]);
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, LayerNormTest, testing::ValuesIn(OpCases()), OpCaseName);

class LayerNormValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, LayerNormValues, testing::ValuesIn(OneCaseADevice()), OpCaseName);

// A row of equal values has no deviation but eps.
TEST_P(LayerNormValues, AConstantRowBecomesBeta) {
  const Floats x(std::vector<float>(3, 7.0f)), gamma(std::vector<float>{1, 2, 3}),
      beta(std::vector<float>{0.5f, -1, 2});
  Floats y(3, kUnset);
  LayerNorm(x.data(), gamma.data(), beta.data(), 1e-5f, y.data(), 1, 3, stream());
  EXPECT_EQ(y.Read(), beta.Read());
}

}  // namespace
}  // namespace cistern::op
