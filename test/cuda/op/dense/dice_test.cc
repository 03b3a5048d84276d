// Dice, with the batch normalization that its backward pass needs.
#include "cuda/op/dense/dice.h"

#include "cuda/op/dense/batch_norm.h"
#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr float kDiceEps = 1e-3f, kDiceAlpha = 0.2f;

double DiceAt(double x, double z) {
  const double p = 1 / (1 + std::exp(-z));
  return p * x + (1 - p) * static_cast<double>(kDiceAlpha) * x;
}

// The matrix is [b, n].
class DiceTest : public HalfOpTest {
 protected:
  Doubles Forward(const Doubles& x) const {
    Doubles y(x.size());
    const double rows = static_cast<double>(b());
    for (size_t c = 0; c < n(); ++c) {
      double mean = 0, variance = 0;
      for (size_t r = 0; r < b(); ++r) mean += x[r * n() + c] / rows;
      for (size_t r = 0; r < b(); ++r) variance += std::pow(x[r * n() + c] - mean, 2) / rows;
      const double deviation = std::sqrt(variance + static_cast<double>(kDiceEps));
      for (size_t r = 0; r < b(); ++r) {
        y[r * n() + c] = DiceAt(x[r * n() + c], (x[r * n() + c] - mean) / deviation);
      }
    }
    return y;
  }
};

TEST_P(DiceTest, IsItsFormulaWithTheGradientThroughTheStatistics) {
  if (b() == 0) return;  // there are no statistics
  const size_t size = b() * n();
  const Doubles x = Random(size, -2, 2), dy = Random(size);
  const Floats input(x);
  Floats mean(n(), kUnset), inv_std(n(), kUnset), running(2 * n(), 0.5f), y(size, kUnset);
  Floats scratch(BatchNormScratchFloats(b(), n()), kUnset), ones(n(), 1), sums(2 * n(), kUnset);
  BatchNormStatistics(input.data(), 0.1f, kDiceEps, mean.data(), inv_std.data(), running.data(),
                      running.data() + n(), b(), n(), scratch.data(), stream());
  Dice(input.data(), mean.data(), inv_std.data(), kDiceAlpha, y.data(), b(), n(), stream());
  ExpectNear(Forward(x), y, 2e-6);
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(size, write), dz(dy);
    DiceBackward(input.data(), mean.data(), inv_std.data(), kDiceAlpha, dz.data(), write, dx.data(),
                 dz.data(), b(), n(), stream());
    BatchNormBackward(input.data(), ConstValues(nullptr), dz.data(), mean.data(), inv_std.data(),
                      ones.data(), {}, Write::kAccumulate, dx.data(), sums.data(),
                      sums.data() + n(), b(), n(), scratch.data(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(v)); }, x, dx, 2e-5, Base(write));
  }
}

TEST_P(DiceTest, InferenceUsesRunningStatistics) {
  const size_t size = b() * n();
  const Doubles x = Random(size, -2, 2), mean = Random(n()), variance = Random(n(), 0, 2);
  Floats y(size, kUnset);
  DiceInference(Floats(x).data(), Floats(mean).data(), Floats(variance).data(), kDiceEps,
                kDiceAlpha, y.data(), b(), n(), stream());
  Doubles expected(size);
  for (size_t i = 0; i < size; ++i) {
    const size_t c = i % n();
    expected[i] =
        DiceAt(x[i], (x[i] - mean[c]) / std::sqrt(variance[c] + static_cast<double>(kDiceEps)));
  }
  ExpectNear(expected, y, 2e-6);
}

TEST_P(DiceTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const size_t size = b() * n();
    const Typed x = RandomOf(type, size, -2, 2), dy = RandomOf(type, size);
    const Floats mean(Random(n())), scale(Random(n(), 0.5, 2));
    Typed y(type, size, 100), dx(type, size, before), dz(type, size, 100);
    Dice(x.half(), mean.data(), scale.data(), kDiceAlpha, y.half(), b(), n(), stream());
    Dice(x.floats(), mean.data(), scale.data(), kDiceAlpha, y.floats(), b(), n(), stream());
    y.ExpectRounded();
    DiceInference(x.half(), mean.data(), scale.data(), kDiceEps, kDiceAlpha, y.half(), b(), n(),
                  stream());
    DiceInference(x.floats(), mean.data(), scale.data(), kDiceEps, kDiceAlpha, y.floats(), b(), n(),
                  stream());
    y.ExpectRounded();
    DiceBackward(x.half(), mean.data(), scale.data(), kDiceAlpha, dy.half(), write, dx.half(),
                 dz.half(), b(), n(), stream());
    DiceBackward(x.floats(), mean.data(), scale.data(), kDiceAlpha, dy.floats(), write, dx.floats(),
                 dz.floats(), b(), n(), stream());
    dx.ExpectRounded();
    dz.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, DiceTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
