#include "cuda/op/dense/batch_norm.h"

#include "cuda/op/dense/relu.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kBatchNormTolerance = 5e-5;
constexpr double kEps = 1e-3;

struct Norm {
  Doubles mean, variance;
};

// Statistics of the columns of x [b, f].
Norm StatisticsOf(const Doubles& x, size_t b, size_t f) {
  Norm norm{Doubles(f, 0.0), Doubles(f, 0.0)};
  for (size_t i = 0; i < x.size(); ++i) norm.mean[i % f] += x[i] / static_cast<double>(b);
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - norm.mean[i % f];
    norm.variance[i % f] += d * d / static_cast<double>(b);
  }
  return norm;
}

Doubles Normalized(const Doubles& x, const Norm& norm, const Doubles& gamma, const Doubles& beta) {
  const size_t f = gamma.size();
  Doubles y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % f;
    y[i] = (x[i] - norm.mean[c]) / std::sqrt(norm.variance[c] + kEps) * gamma[c] + beta[c];
  }
  return y;
}

// The op calls of a training step, with all their outputs.
struct Step {
  Step(size_t b, size_t f)
      : mean(f),
        inv_std(f),
        running_mean(f, 0.25f),
        running_var(f, 2.0f),
        y(b * f, kUnset),
        scratch(BatchNormScratchFloats(b, f)) {}
  Floats mean, inv_std, running_mean, running_var, y, scratch;
};

class BatchNormTest : public OpTest {
 protected:
  size_t width() const { return k() * n(); }

  Step Forward(const Doubles& x, const Doubles& gamma, const Doubles& beta,
               const BatchNormEpilogue& epilogue) {
    Step step(b(), width());
    BatchNormStatistics(Floats(x).data(), 0.1f, kEps, step.mean.data(), step.inv_std.data(),
                        step.running_mean.data(), step.running_var.data(), b(), width(),
                        step.scratch.data(), stream());
    BatchNormForward(Floats(x).data(), step.mean.data(), step.inv_std.data(), Floats(gamma).data(),
                     Floats(beta).data(), epilogue, step.y.data(), b(), width(), stream());
    return step;
  }
};

TEST_P(BatchNormTest, ForwardNormalizesWithTheBatchAndTracksIt) {
  if (b() == 0) return;
  const Doubles x = Random(b() * width(), 4, 7), gamma = Random(width()), beta = Random(width());
  const Step step = Forward(x, gamma, beta, {});
  const Norm norm = StatisticsOf(x, b(), width());
  ExpectNear(norm.mean, step.mean, 1e-6);
  ExpectNear(Normalized(x, norm, gamma, beta), step.y, kBatchNormTolerance);
  Doubles running_mean(width()), running_var(width());
  const double unbiased =
      b() == 1 ? 1.0 : static_cast<double>(b()) / (static_cast<double>(b()) - 1);
  for (size_t c = 0; c < width(); ++c) {
    running_mean[c] = 0.9 * 0.25 + 0.1 * norm.mean[c];
    running_var[c] = 0.9 * 2.0 + 0.1 * norm.variance[c] * unbiased;
  }
  ExpectNear(running_mean, step.running_mean, 1e-6);
  ExpectNear(running_var, step.running_var, 1e-6);
}

TEST_P(BatchNormTest, VarianceSurvivesALargeMean) {
  if (b() < 2) return;
  const Doubles x = Random(b() * width(), 1000, 1001);
  const Step step = Forward(x, Doubles(width(), 1.0), Doubles(width(), 0.0), {});
  const Norm norm = StatisticsOf(x, b(), width());
  Doubles inv_std(width());
  for (size_t c = 0; c < width(); ++c) inv_std[c] = 1 / std::sqrt(norm.variance[c] + kEps);
  ExpectNear(inv_std, step.inv_std, 1e-3);
}

TEST_P(BatchNormTest, BackwardIsTheDerivative) {
  // A batch of one sample has no variance to differentiate: x would move only the mean.
  if (b() == 0) return;
  const Doubles x = Random(b() * width()), gamma = Random(width(), 0.5, 2);
  const Doubles beta = Random(width()), dy = Random(x.size());
  const Step step = Forward(x, gamma, beta, {});
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(x.size(), write), dgamma(width(), kUnset), dbeta(width(), kUnset);
    Floats scratch(BatchNormScratchFloats(b(), width()), kUnset);
    BatchNormBackward(Floats(x).data(), nullptr, Floats(dy).data(), step.mean.data(),
                      step.inv_std.data(), Floats(gamma).data(), {}, write, dx.data(),
                      dgamma.data(), dbeta.data(), b(), width(), scratch.data(), stream());
    const auto loss = [&](const Doubles& x_, const Doubles& gamma_, const Doubles& beta_) {
      return Dot(dy, Normalized(x_, StatisticsOf(x_, b(), width()), gamma_, beta_));
    };
    ExpectGradient([&](const Doubles& v) { return loss(v, gamma, beta); }, x, dx, 1e-4,
                   Base(write));
    ExpectGradient([&](const Doubles& v) { return loss(x, v, beta); }, gamma, dgamma,
                   kBatchNormTolerance);
    ExpectGradient([&](const Doubles& v) { return loss(x, gamma, v); }, beta, dbeta,
                   kBatchNormTolerance);
  }
}

TEST_P(BatchNormTest, EpilogueIsReluThenDropout) {
  if (b() == 0) return;
  const Doubles x = Random(b() * width()), gamma = Random(width(), 0.5, 2);
  const Doubles beta = Random(width());
  const Floats dy(Random(x.size()));
  for (const float rate : {0.0f, 0.4f}) {
    const BatchNormEpilogue epilogue = {true, {rate, 11, 13}};
    const Step plain = Forward(x, gamma, beta, {}), fused = Forward(x, gamma, beta, epilogue);
    Floats y(x.size()), dz(x.size());
    ReluDropout(plain.y.data(), epilogue.dropout, y.data(), b(), width(), stream());
    EXPECT_EQ(y.Read(), fused.y.Read());

    ReluDropoutBackward(y.data(), dy.data(), rate, Write::kOverwrite, dz.data(), x.size(),
                        stream());
    const Floats in(x), scale(gamma);
    Floats scratch(BatchNormScratchFloats(b(), width()));
    const auto backward = [&](const Floats& gradient, const float* output,
                              const BatchNormEpilogue& after) {
      std::vector<Floats> out = {Floats(x.size()), Floats(width()), Floats(width())};
      BatchNormBackward(in.data(), output, gradient.data(), plain.mean.data(), plain.inv_std.data(),
                        scale.data(), after, Write::kOverwrite, out[0].data(), out[1].data(),
                        out[2].data(), b(), width(), scratch.data(), stream());
      return out;
    };
    const auto expected = backward(dz, nullptr, {}), actual = backward(dy, y.data(), epilogue);
    for (size_t i = 0; i < 3; ++i) {
      ExpectNear(Doubles(expected[i].Read().begin(), expected[i].Read().end()), actual[i], 1e-6);
    }
  }
}

TEST_P(BatchNormTest, InferenceUsesTheRunningStatistics) {
  const Doubles x = Random(b() * width()), gamma = Random(width()), beta = Random(width());
  const Norm running = {Random(width()), Random(width(), 0, 3)};
  Doubles expected = Normalized(x, running, gamma, beta);
  Floats y(x.size(), kUnset);
  const auto infer = [&](bool relu) {
    BatchNormInference(Floats(x).data(), Floats(running.mean).data(),
                       Floats(running.variance).data(), kEps, Floats(gamma).data(),
                       Floats(beta).data(), relu, y.data(), b(), width(), stream());
  };
  infer(false);
  ExpectNear(expected, y, kBatchNormTolerance);
  for (double& v : expected) v = std::max(v, 0.0);
  infer(true);
  ExpectNear(expected, y, kBatchNormTolerance);
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
