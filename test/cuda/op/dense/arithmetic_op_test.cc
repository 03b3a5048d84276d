// The stateless ops: arithmetic, sums, copies, interactions, the loss.
#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fm_order2.h"
#include "cuda/op/dense/multiply.h"
#include "cuda/op/dense/reduce_sum.h"
#include "cuda/op/dense/sum.h"
#include "cuda/op/embedding/copy_rows.h"
#include "cuda/op/loss/bce_loss.h"
#include "cuda/op/update/dense_update.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kArithmeticTolerance = 2e-5;

class ArithmeticOpTest : public OpTest {
 protected:
  size_t count() const { return b() * k() * n(); }
};

TEST_P(ArithmeticOpTest, ElementwiseOpsActOnEveryElement) {
  const Doubles x = Random(count()), y = Random(count());
  Floats out(count(), kUnset);
  Fill(3.0f, out.data(), count(), stream());
  ExpectNear(Doubles(count(), 3.0), out, 0);
  Add(Floats(x).data(), Floats(y).data(), out.data(), count(), stream());
  Doubles expected(count());
  for (size_t i = 0; i < count(); ++i) expected[i] = x[i] + y[i];
  ExpectNear(expected, out, 1e-6);
  Accumulate(Floats(y).data(), out.data(), count(), stream());
  Scale(-0.5f, out.data(), count(), stream());
  for (size_t i = 0; i < count(); ++i) expected[i] = -0.5 * (x[i] + 2 * y[i]);
  ExpectNear(expected, out, 1e-6);
}

TEST_P(ArithmeticOpTest, SumsAreExactToDouble) {
  const Doubles x = Random(count(), -3, 5);
  Floats scratch(SumScratchFloats(count()), kUnset);
  double squares = 0, magnitudes = 0;
  Array<double> actual(1, -1);
  for (const double v : x) {
    squares += v * v;
    magnitudes += std::abs(v);
  }
  SumOfSquares(Floats(x).data(), actual.data(), count(), scratch.data(), stream());
  EXPECT_NEAR(squares, actual.Read()[0], 1e-12 * squares);
  SumOfMagnitudes(Floats(x).data(), actual.data(), count(), scratch.data(), stream());
  EXPECT_NEAR(magnitudes, actual.Read()[0], 1e-12 * magnitudes);
}

TEST_P(ArithmeticOpTest, CopyColumnsMovesABlockAndNothingElse) {
  // Alignments that no vectorized load fits, and one that fits if n is a multiple of 4.
  for (const size_t aligned : {1, 4}) {
    const size_t width = n(), from = width + 2 * aligned, to = width + 3 * aligned;
    const Doubles x = Random(b() * from);
    for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
      Floats y(b() * to, kBefore);
      CopyColumns(Floats(x).data() + aligned, from, write, y.data() + 2 * aligned, to, b(), width,
                  stream());
      Doubles expected(b() * to, kBefore);
      for (size_t r = 0; r < b(); ++r) {
        for (size_t c = 0; c < width; ++c) {
          expected[r * to + 2 * aligned + c] = Base(write) + x[r * from + aligned + c];
        }
      }
      ExpectNear(expected, y, 1e-6);
    }
  }
}

// Every other row of a table, in descending order, to destinations with gaps; rows of floats, of
// floats that no vectorized load fits, of bytes, and rows that pass the caches.
TEST_P(ArithmeticOpTest, CopyRowsMovesRowsAndNothingElse) {
  std::vector<uint32_t> from_rows, to_rows;
  for (size_t i = 0; i < b(); ++i) {
    from_rows.push_back(static_cast<uint32_t>(2 * (b() - 1 - i)));
    to_rows.push_back(static_cast<uint32_t>(3 * i + 1));
  }
  for (const size_t bytes : {n(), 4 * n(), 16 * n(), 32 * n()}) {
    std::vector<uint8_t> x(2 * b() * bytes);
    for (uint8_t& byte : x) byte = static_cast<uint8_t>(RandomIndex(256));
    Array<uint8_t> from(x), listed(3 * b() * bytes, 7), all(b() * bytes, 7);
    CopyRows(from.data(), Array<uint32_t>(from_rows).data(), listed.data(),
             Array<uint32_t>(to_rows).data(), bytes, b(), stream());
    CopyRows(from.data(), nullptr, all.data(), nullptr, bytes, b(), stream());
    std::vector<uint8_t> expected(3 * b() * bytes, 7);
    for (size_t i = 0; i < b() * bytes; ++i) {
      expected[to_rows[i / bytes] * bytes + i % bytes] =
          x[from_rows[i / bytes] * bytes + i % bytes];
    }
    EXPECT_EQ(listed.Read(), expected) << bytes;
    EXPECT_EQ(all.Read(), std::vector<uint8_t>(x.begin(), x.begin() + b() * bytes)) << bytes;
  }
}

TEST_P(ArithmeticOpTest, ReduceSumAddsOverTheMiddleAxis) {
  const Doubles x = Random(count()), dy = Random(b() * n());
  Floats y(b() * n(), kUnset);
  ScaledSum(1, Floats(x).data(), Write::kOverwrite, y.data(), b(), k(), n(), stream());
  Doubles expected(b() * n(), 0.0);
  for (size_t i = 0; i < count(); ++i) expected[i / (k() * n()) * n() + i % n()] += x[i];
  ExpectNear(expected, y, kArithmeticTolerance);

  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write);
    ScaledRepeat(1, Floats(dy).data(), write, dx.data(), b(), k(), n(), stream());
    Doubles gradient(count());
    for (size_t i = 0; i < count(); ++i) {
      gradient[i] = Base(write) + dy[i / (k() * n()) * n() + i % n()];
    }
    ExpectNear(gradient, dx, 1e-6);
  }
}

TEST_P(ArithmeticOpTest, ScaledSumAndRepeatAreEachOthersGradients) {
  const Doubles x = Random(count()), dy = Random(b() * n());
  const float factor = k() == 0 ? 1 : 1 / static_cast<float>(k());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats mean = Gradient(b() * n(), write), dx = Gradient(count(), write);
    ScaledSum(factor, Floats(x).data(), write, mean.data(), b(), k(), n(), stream());
    ScaledRepeat(factor, Floats(dy).data(), write, dx.data(), b(), k(), n(), stream());
    Doubles expected(b() * n(), Base(write)), gradient(count());
    for (size_t i = 0; i < count(); ++i) {
      const size_t o = i / (k() * n()) * n() + i % n();
      expected[o] += x[i] / static_cast<double>(k());
      gradient[i] = Base(write) + dy[o] / static_cast<double>(k());
    }
    ExpectNear(expected, mean, 1e-6);
    ExpectNear(gradient, dx, 1e-6);
  }
}

TEST_P(ArithmeticOpTest, ReduceSumOverTheFirstAxis) {
  const Doubles x = Random(b() * n());
  Floats y(n(), kUnset);
  ScaledSum(1, Floats(x).data(), Write::kOverwrite, y.data(), 1, b(), n(), stream());
  Doubles expected(n(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) expected[i % n()] += x[i];
  ExpectNear(expected, y, 1e-4);
}

TEST_P(ArithmeticOpTest, MultiplyScalesEachFeaturesVector) {
  const Doubles x = Random(b() * k()), weight = Random(k() * n()), dy = Random(count());
  const auto forward = [&](const Doubles& x_, const Doubles& w_) {
    Doubles y(count());
    for (size_t i = 0; i < count(); ++i) y[i] = x_[i / n()] * w_[i % (k() * n())];
    return y;
  };
  Floats y(count(), kUnset);
  Multiply(Floats(x).data(), Floats(weight).data(), y.data(), b(), k(), n(), stream());
  ExpectNear(forward(x, weight), y, kArithmeticTolerance);

  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(x.size(), write), dweight(weight.size(), kUnset);
    Floats scratch(MultiplyScratchFloats(b(), k(), n()), kUnset);
    MultiplyBackward(Floats(x).data(), Floats(weight).data(), Floats(dy).data(), write, dx.data(),
                     dweight.data(), b(), k(), n(), scratch.data(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v, weight)); }, x, dx,
                   kArithmeticTolerance, Base(write));
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(x, v)); }, weight, dweight,
                   kArithmeticTolerance);
  }
}

TEST_P(ArithmeticOpTest, FmOrder2IsTheSumOverPairs) {
  const Doubles x = Random(count()), dy = Random(b() * n());
  // Rendle's definition, before the reformulation in linear time: the sum over pairs s < t.
  const auto forward = [&](const Doubles& v) {
    Doubles y(b() * n(), 0.0);
    for (size_t i = 0; i < b(); ++i) {
      for (size_t s = 0; s < k(); ++s) {
        for (size_t t = s + 1; t < k(); ++t) {
          for (size_t e = 0; e < n(); ++e) {
            y[i * n() + e] += v[(i * k() + s) * n() + e] * v[(i * k() + t) * n() + e];
          }
        }
      }
    }
    return y;
  };
  Floats y(b() * n(), kUnset);
  FmOrder2(Floats(x).data(), k() * n(), y.data(), b(), k(), n(), stream());
  ExpectNear(forward(x), y, kArithmeticTolerance);

  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write);
    FmOrder2Backward(Floats(x).data(), k() * n(), Floats(dy).data(), write, dx.data(), b(), k(),
                     n(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v)); }, x, dx,
                   kArithmeticTolerance, Base(write));
  }
}

// Strides that fit the packs of a GPU, and one that does not.
TEST_P(ArithmeticOpTest, FmOrder2ReadsRowsOfAWiderMatrix) {
  const size_t width = k() * n();
  const Doubles x = Random(count()), dy = Random(b() * n());
  Floats y(b() * n(), kUnset), wide_y = y, dx = Gradient(count(), Write::kAccumulate);
  FmOrder2(Floats(x).data(), width, y.data(), b(), k(), n(), stream());
  FmOrder2Backward(Floats(x).data(), width, Floats(dy).data(), Write::kAccumulate, dx.data(), b(),
                   k(), n(), stream());
  for (const size_t more : {3, 4, 8}) {
    const size_t stride = width + more;
    Doubles wide(b() * stride, double{kUnset});
    for (size_t i = 0; i < count(); ++i) wide[i / width * stride + i % width] = x[i];
    const Floats in(wide);
    Floats wide_dx(wide.size(), kBefore);
    FmOrder2(in.data(), stride, wide_y.data(), b(), k(), n(), stream());
    FmOrder2Backward(in.data(), stride, Floats(dy).data(), Write::kAccumulate, wide_dx.data(), b(),
                     k(), n(), stream());
    EXPECT_EQ(wide_y.Read(), y.Read()) << more;
    const std::vector<float>&expected = dx.Read(), &made = wide_dx.Read();
    for (size_t i = 0; i < wide.size(); ++i) {
      const size_t r = i / stride, c = i % stride;
      ASSERT_EQ(made[i], c < width ? expected[r * width + c] : kBefore) << more << ", " << i;
    }
  }
}

TEST_P(ArithmeticOpTest, BceLossIsTheMeanAndItsGradient) {
  const size_t samples = b() * n();
  const Doubles logits = Random(samples, -8, 8);
  Doubles labels = Random(samples, 0, 1);
  for (size_t i = 0; i < samples; i += 2) labels[i] = static_cast<double>(i / 2 % 2);
  // By definition: -y log p - (1 - y) log (1 - p).
  const auto loss = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < samples; ++i) {
      const double p = 1 / (1 + std::exp(-x[i]));
      sum -= labels[i] * std::log(p) + (1 - labels[i]) * std::log(1 - p);
    }
    return samples == 0 ? 0.0 : sum / static_cast<double>(samples);
  };
  Floats dlogits(samples, kUnset), scratch(BceLossScratchFloats(samples), kUnset);
  Array<double> actual(1, -1), alone(1, -1);
  BceLoss(Floats(logits).data(), Floats(labels).data(), actual.data(), dlogits.data(), samples,
          samples, scratch.data(), stream());
  EXPECT_NEAR(loss(logits), actual.Read()[0], 1e-6);
  ExpectGradient(loss, logits, dlogits, 1e-7);
  BceLoss(Floats(logits).data(), Floats(labels).data(), alone.data(), nullptr, samples, 4 * samples,
          scratch.data(), stream());
  EXPECT_NEAR(loss(logits) / 4, alone.Read()[0], 1e-6);
}

TEST_P(ArithmeticOpTest, BceLossWeightsSamples) {
  const size_t labels_num = 2, samples = b(), size = samples * labels_num;
  const Doubles logits = Random(size, -8, 8), labels = Random(size, 0, 1);
  Doubles weights = Random(samples, 0, 3);
  for (size_t i = 0; i < samples; i += 3) weights[i] = 0;
  const auto loss = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) {
      const double p = 1 / (1 + std::exp(-x[i]));
      sum -=
          weights[i / labels_num] * (labels[i] * std::log(p) + (1 - labels[i]) * std::log(1 - p));
    }
    return size == 0 ? 0.0 : sum / static_cast<double>(size);
  };
  Floats dlogits(size, kUnset), plain(size, kUnset), of_ones(size, kUnset);
  Floats scratch(BceLossScratchFloats(size), kUnset);
  Array<double> actual(1, -1), plain_loss(1, -1), loss_of_ones(1, -1);
  Floats values(labels), given(weights), ones(samples, 1);
  BceLoss(Floats(logits).data(), {values.data(), given.data(), labels_num}, actual.data(),
          dlogits.data(), size, size, scratch.data(), stream());
  EXPECT_NEAR(loss(logits), actual.Read()[0], 1e-6);
  ExpectGradient(loss, logits, dlogits, 1e-7);
  for (size_t i = 0; i < size; ++i) {
    if (weights[i / labels_num] == 0) {
      EXPECT_EQ(dlogits.Read()[i], 0);
    }
  }
  BceLoss(Floats(logits).data(), values.data(), plain_loss.data(), plain.data(), size, size,
          scratch.data(), stream());
  BceLoss(Floats(logits).data(), {values.data(), ones.data(), labels_num}, loss_of_ones.data(),
          of_ones.data(), size, size, scratch.data(), stream());
  EXPECT_EQ(plain_loss.Read(), loss_of_ones.Read());
  EXPECT_EQ(plain.Read(), of_ones.Read());
}

TEST_P(ArithmeticOpTest, BceLossKnowsTheWeightOfPositivesAndThePrior) {
  const size_t samples = b() * n();
  const Doubles logits = Random(samples, -8, 8), labels = Random(samples, 0, 1);
  const double positive_weight = 7.5, offset = 2.25;
  const auto loss = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < samples; ++i) {
      const double p = 1 / (1 + std::exp(-(x[i] + offset)));
      sum -= positive_weight * labels[i] * std::log(p) + (1 - labels[i]) * std::log(1 - p);
    }
    return samples == 0 ? 0.0 : sum / static_cast<double>(samples);
  };
  Floats dlogits(samples, kUnset), scratch(BceLossScratchFloats(samples), kUnset), values(labels);
  Array<double> actual(1, -1);
  WeightedLabels of_batch = values.data();
  of_batch.positive_weight = positive_weight;
  of_batch.logit_offset = offset;
  BceLoss(Floats(logits).data(), of_batch, actual.data(), dlogits.data(), samples, samples,
          scratch.data(), stream());
  EXPECT_NEAR(loss(logits), actual.Read()[0], 2e-6);
  ExpectGradient(loss, logits, dlogits, 1e-6);
}

TEST_P(ArithmeticOpTest, DenseUpdateIsAdamOverTheWholeBuffer) {
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  Doubles weight = Random(count());
  const Doubles grad = Random(count());
  Doubles state = Random(2 * count(), 0.1, 1);
  Floats actual_weight(weight), actual_state(state);
  DenseUpdate(rule, 0.05f, Floats(grad).data(), actual_weight.data(), actual_state.data(), count(),
              nullptr, stream());
  const double beta1 = rule.beta1, beta2 = rule.beta2;
  for (size_t i = 0; i < count(); ++i) {
    double& m = state[i];
    double& v = state[count() + i];
    m = beta1 * m + (1 - beta1) * grad[i];
    v = beta2 * v + (1 - beta2) * grad[i] * grad[i];
    weight[i] -=
        static_cast<double>(0.05f) * m / (std::sqrt(v) + static_cast<double>(rule.epsilon));
  }
  ExpectNear(weight, actual_weight, 1e-6);
  ExpectNear(state, actual_state, 1e-6);
}

TEST_P(ArithmeticOpTest, RegularizersAddTheirGradient) {
  Doubles weight = Random(count());
  if (!weight.empty()) weight[0] = 0;
  const Doubles grad = Random(count());
  Floats l1(grad), l2(grad);
  AddL1Gradient(0.5f, Floats(weight).data(), l1.data(), count(), stream());
  AddL2Gradient(0.5f, Floats(weight).data(), l2.data(), count(), stream());
  Doubles expected1 = grad, expected2 = grad;
  for (size_t i = 0; i < count(); ++i) {
    expected1[i] += weight[i] > 0 ? 0.5 : weight[i] < 0 ? -0.5 : 0.0;
    expected2[i] += 0.5 * weight[i];
  }
  ExpectNear(expected1, l1, 1e-6);
  ExpectNear(expected2, l2, 1e-6);
}

// PyTorch's BCEWithLogitsLoss(weight=w), whose mean divides by the number of samples:
// sum of w * (max(x, 0) - x * y + log(1 + exp(-|x|))) / 4, with 16 digits.
TEST(BceLoss, DividesByTheNumberOfSamplesAsPyTorchDoes) {
  Stream stream;
  const float logits[] = {0.5f, -1.25f, 2, 0}, labels[] = {1, 0, 0, 1}, weights[] = {1, 2, 0.5f, 4};
  double loss = -1;
  float dlogits[4];
  std::vector<float> scratch(BceLossScratchFloats(4));
  BceLoss(logits, {labels, weights, 1}, &loss, dlogits, 4, 4, scratch.data(), stream);
  EXPECT_NEAR(loss, 1.20349696865803, 1e-15);
  const double expected[] = {-0.09438516719953635, 0.11135006941265442, 0.11009963474723529, -0.5};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(dlogits[i], expected[i], 1e-8);
}

// PyTorch's BCEWithLogitsLoss(pos_weight=3): the mean of 3 y softplus(-x) + (1 - y) softplus(x),
// and its derivative 3 y (sigmoid(x) - 1) + (1 - y) sigmoid(x), with 16 digits.
TEST(BceLoss, WeighsPositivesAsPyTorchDoes) {
  Stream stream;
  const float logits[] = {0.5f, -1.25f, 2, 0}, values[] = {1, 0, 0.25f, 1};
  WeightedLabels labels = values;
  labels.positive_weight = 3;
  double loss = -1;
  float dlogits[4];
  std::vector<float> scratch(BceLossScratchFloats(4));
  BceLoss(logits, labels, &loss, dlogits, 4, 4, scratch.data(), stream);
  EXPECT_NEAR(loss, 1.3609983980324971, 1e-15);
  const double expected[] = {-0.283155501598609, 0.05567503470632721, 0.14279890424170588, -0.375};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(dlogits[i], expected[i], 1e-8);
}

TEST(BceLoss, IsStableForLargeLogitsAndPropagatesNonFiniteOnes) {
  Stream stream;
  const auto loss = [&](float logit, float label) {
    double value = -1;
    std::vector<float> scratch(BceLossScratchFloats(1));
    BceLoss(&logit, &label, &value, nullptr, 1, 1, scratch.data(), stream);
    return value;
  };
  EXPECT_EQ(loss(1000, 1), 0);
  EXPECT_EQ(loss(1000, 0), 1000);
  EXPECT_EQ(loss(-1000, 1), 1000);
  EXPECT_NEAR(loss(40, 1), std::exp(-40.0), 1e-25);
  for (const float logit : {NAN, INFINITY, -INFINITY}) {
    for (const float label : {0.0f, 1.0f}) {
      EXPECT_FALSE(std::isfinite(loss(logit, label))) << logit << " " << label;
    }
  }
}

TEST(Sigmoid, IsAccurateOverTheWholeRange) {
  Stream stream;
  std::vector<float> x, y;
  for (float v = -120; v <= 120; v += 0.37f) x.push_back(v);
  x.insert(x.end(), {-INFINITY, INFINITY, 0.0f});
  y.resize(x.size());
  Sigmoid(x.data(), y.data(), x.size(), stream);
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    ASSERT_NEAR(expected, y[i], 1e-7 * expected + 1e-45) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ArithmeticOpTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
