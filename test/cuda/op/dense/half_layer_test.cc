// Products, interactions, batch normalization and losses of 16-bit elements.
#include "cuda/op/dense/batch_norm.h"
#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/multi_cross.h"
#include "cuda/op/loss/bce_loss.h"
#include "cuda/op/loss/label_loss.h"
#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

class HalfLayerTest : public HalfOpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, HalfLayerTest, testing::ValuesIn(OpCases()), OpCaseName);

// Tests with their own shapes.
class HalfInteractionTest : public HalfLayerTest {
 protected:
  void ExpectRoundedOnce(size_t samples, size_t slots, size_t dim) {
    SCOPED_TRACE(absl::StrCat(samples, " samples of ", slots, " slots of ", dim));
    const size_t columns = DotInteractionColumns(slots, dim);
    ForWrites([&](ElementType type, Write write, float before) {
      const Typed mlp = RandomOf(type, samples * dim), slot = RandomOf(type, samples * slots * dim);
      const Typed dy = RandomOf(type, samples * columns);
      Typed y(type, dy.size(), 100), dmlp(type, mlp.size(), before);
      Typed dslot(type, slot.size(), before);
      DotInteraction(mlp.half(), slot.half(), y.half(), samples, slots, dim, stream());
      DotInteraction(mlp.floats(), slot.floats(), y.floats(), samples, slots, dim, stream());
      y.ExpectRounded();
      DotInteractionBackward(mlp.half(), slot.half(), dy.half(), write, dmlp.half(), write,
                             dslot.half(), samples, slots, dim, stream());
      DotInteractionBackward(mlp.floats(), slot.floats(), dy.floats(), write, dmlp.floats(), write,
                             dslot.floats(), samples, slots, dim, stream());
      dmlp.ExpectRounded();
      dslot.ExpectRounded();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, HalfInteractionTest, testing::ValuesIn(OneCaseADevice()),
                         OpCaseName);

TEST_P(HalfInteractionTest, RoundsOnce) {
  for (const auto& [samples, slots, dim] : std::vector<std::array<size_t, 3>>{{1, 1, 1},
                                                                              {3, 0, 5},
                                                                              {1, 20, 33},
                                                                              {31, 1, 32},
                                                                              {33, 20, 31},
                                                                              {65, 20, 1},
                                                                              {200, 9, 33}}) {
    ExpectRoundedOnce(samples, slots, dim);
  }
}

// On a GPU, tensor cores support some of these shapes.
TEST_P(HalfInteractionTest, SupportsShapesWithAndWithoutTensorCores) {
  for (const size_t slots : {1, 15, 16, 26, 31, 32}) ExpectRoundedOnce(5, slots, 16);
  for (const size_t dim : {8, 24, 48, 128, 272, 1040}) ExpectRoundedOnce(3, 26, dim);
}

// One gradient without the other; and vectors that no vectorized load can read.
TEST_P(HalfInteractionTest, ComputesSingleGradientsAndUnalignedInputs) {
  const size_t samples = 6, slots = 26, dim = 16, columns = DotInteractionColumns(slots, dim);
  for (const size_t shift : {0, 1}) {
    const auto type = ElementType::kHalf;
    const Typed mlp = RandomOf(type, shift + samples * dim);
    const Typed slot = RandomOf(type, samples * slots * dim),
                dy = RandomOf(type, samples * columns);
    const auto* from = static_cast<const HalfBits*>(mlp.half().data) + shift;
    const ConstValues shifted = {from, type};
    Typed dmlp(type, samples * dim, 100), dslot(type, slot.size(), 100);
    DotInteractionBackward(shifted, slot.half(), dy.half(), Write::kOverwrite, dmlp.half(),
                           Write::kOverwrite, nullptr, samples, slots, dim, stream());
    DotInteractionBackward(shifted, slot.half(), dy.half(), Write::kOverwrite, nullptr,
                           Write::kOverwrite, dslot.half(), samples, slots, dim, stream());
    DotInteractionBackward(mlp.floats() + shift, slot.floats(), dy.floats(), Write::kOverwrite,
                           dmlp.floats(), Write::kOverwrite, dslot.floats(), samples, slots, dim,
                           stream());
    dmlp.ExpectRounded();
    dslot.ExpectRounded();
  }
}

TEST_P(HalfLayerTest, Crosses) {
  constexpr size_t kLayers = 3;
  const size_t width = n();
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, b() * width), dy = RandomOf(type, b() * width);
    const double size = 1 / std::sqrt(static_cast<double>(width) + 1);
    const Floats parameters(Random(2 * kLayers * width, -size, size));
    Floats scratch(MultiCrossScratchFloats(b(), kLayers, width));
    Floats grads(parameters.size(), kUnset), expected = grads;
    Typed y(type, x.size(), 100), dx(type, x.size(), before);
    MultiCross(x.half(), parameters.data(), y.half(), b(), kLayers, width, scratch.data(),
               stream());
    MultiCross(x.floats(), parameters.data(), y.floats(), b(), kLayers, width, scratch.data(),
               stream());
    y.ExpectRounded();
    MultiCrossBackward(x.half(), parameters.data(), dy.half(), write, dx.half(), grads.data(), b(),
                       kLayers, width, scratch.data(), stream());
    MultiCrossBackward(x.floats(), parameters.data(), dy.floats(), write, dx.floats(),
                       expected.data(), b(), kLayers, width, scratch.data(), stream());
    dx.ExpectRounded();
    ExpectSame(expected, grads);
  });
}

constexpr double kAdded = 1;  // biases, and kBefore

TEST_P(HalfLayerTest, MatrixProducts) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed a = RandomOf(type, b() * k()), w = RandomOf(type, k() * n());
    for (const Transpose ta : {Transpose::kNo, Transpose::kYes}) {
      for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
        Typed c(type, b() * n(), before);
        Floats wide(c.size(), before);
        Gemm(ta, tb, b(), n(), k(), a.half(), w.half(), write, c.half(), stream());
        Gemm(ta, tb, b(), n(), k(), a.half(), w.half(), write, wide.data(), stream());
        Gemm(ta, tb, b(), n(), k(), a.floats(), w.floats(), write, c.floats(), stream());
        c.ExpectRounded(kAdded);
        const Floats expected(std::vector<float>(c.size(), 0));
        Convert(ConstValues(c.floats()), const_cast<float*>(expected.data()), c.size(), stream());
        ExpectSame(expected, wide, k());
      }
    }
  });
}

TEST_P(HalfLayerTest, FullyConnectedLayers) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, b() * k()), weight = RandomOf(type, k() * n());
    const Typed bias = RandomOf(type, n()), dy = RandomOf(type, b() * n());
    Typed y(type, dy.size(), 100), dx(type, x.size(), before);
    Floats scratch(FullyConnectedScratchFloats(type, b(), k(), n()), NAN);
    FullyConnected(x.half(), weight.half(), bias.half(), y.half(), b(), k(), n(), scratch.data(),
                   stream());
    FullyConnected(x.floats(), weight.floats(), bias.floats(), y.floats(), b(), k(), n(),
                   scratch.data(), stream());
    y.ExpectRounded(kAdded);
    Floats dw(weight.size(), kUnset), expected_dw = dw;
    FullyConnectedBackward(x.half(), weight.half(), dy.half(), write, dx.half(), dw.data(), b(),
                           k(), n(), scratch.data(), stream());
    FullyConnectedBackward(x.floats(), weight.floats(), dy.floats(), write, dx.floats(),
                           expected_dw.data(), b(), k(), n(), scratch.data(), stream());
    dx.ExpectRounded(kAdded);
    ExpectSame(expected_dw, dw, b());
  });
}

// x and dx in rows of `columns` elements instead of k, with zeros at their ends.
Doubles Padded(const Doubles& x, size_t b, size_t k, size_t columns) {
  Doubles wide(b * columns, 0.0);
  for (size_t i = 0; i < x.size(); ++i) wide[i / k * columns + i % k] = x[i];
  return wide;
}

TEST_P(HalfLayerTest, FullyConnectedLayersOfPaddedRows) {
  if (n() == 1) return;
  ForWrites([&](ElementType type, Write write, float before) {
    const size_t columns = WideColumns(type, k());
    const Typed x = RandomOf(type, b() * k()), weight = RandomOf(type, k() * n());
    const Typed bias = RandomOf(type, n()), dy = RandomOf(type, b() * n());
    const Typed wide(type, Padded(x.Read(), b(), k(), columns));
    Floats scratch(FullyConnectedScratchFloats(type, b(), k(), n()), NAN);
    for (const bool relu : {false, true}) {
      Typed y(type, dy.size(), 100);
      FullyConnectedWide(wide.half(), weight.half(), relu ? ConstValues(bias.half()) : nullptr,
                         relu, y.half(), b(), k(), n(), scratch.data(), stream());
      const auto compute = relu ? FullyConnectedRelu : FullyConnected;
      compute(x.floats(), weight.floats(), relu ? bias.floats() : nullptr, y.floats(), b(), k(),
              n(), scratch.data(), stream());
      y.ExpectRounded(kAdded);
    }
    Typed dx(type, x.size(), before), wide_dx(type, wide.size(), before);
    Floats dw(weight.size(), kUnset), expected_dw = dw;
    FullyConnectedWideBackward(wide.half(), weight.half(), dy.half(), write, wide_dx.half(),
                               dw.data(), b(), k(), n(), scratch.data(), stream());
    FullyConnectedBackward(x.half(), weight.half(), dy.half(), write, dx.half(), expected_dw.data(),
                           b(), k(), n(), scratch.data(), stream());
    ExpectSame(expected_dw, dw, b());
    const Doubles made = wide_dx.Read(), expected = dx.Read();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(made[i / k() * columns + i % k()], expected[i], 0.02) << i;
    }
  });
}

TEST_P(HalfLayerTest, OneOutputAfterRelu) {
  ForTypes([&](ElementType type) {
    const Typed in = RandomOf(type, b() * n()), first = RandomOf(type, n() * k());
    const Typed bias = RandomOf(type, k()), weight = RandomOf(type, k()), dy = RandomOf(type, b());
    Typed x(type, b() * k(), 100), dx(type, x.size(), 100);
    Floats scratch(std::max(FullyConnectedScratchFloats(type, b(), k(), 1),
                            FullyConnectedScratchFloats(type, b(), n(), k())),
                   NAN);
    FullyConnectedRelu(in.half(), first.half(), bias.half(), x.half(), b(), n(), k(),
                       scratch.data(), stream());
    FullyConnectedRelu(in.floats(), first.floats(), bias.floats(), x.floats(), b(), n(), k(),
                       scratch.data(), stream());
    x.ExpectRounded(kAdded);
    Floats dw(weight.size(), kUnset), expected_dw = dw;
    DotBackwardBehindRelu(x.half(), weight.half(), dy.half(), dx.half(), dw.data(), b(), k(),
                          scratch.data(), stream());
    const Typed rounded(type, x.Read());  // the values that the 16-bit op reads
    DotBackwardBehindRelu(rounded.floats(), weight.floats(), dy.floats(), dx.floats(),
                          expected_dw.data(), b(), k(), scratch.data(), stream());
    dx.ExpectRounded();
    ExpectSame(expected_dw, dw, b());
  });
}

TEST_P(HalfLayerTest, BiasGradients) {
  ForTypes([&](ElementType type) {
    const Typed y = RandomOf(type, b() * n());
    Typed dy = RandomOf(type, b() * n());
    Floats scratch(BiasGradientScratchFloats(b(), n()), NAN), dbias(n(), kUnset), expected = dbias;
    BiasGradient(y.half(), dy.half(), dbias.data(), b(), n(), scratch.data(), stream());
    BiasGradient(y.floats(), dy.floats(), expected.data(), b(), n(), scratch.data(), stream());
    dy.ExpectRounded();
    ExpectSame(expected, dbias);
  });
}

TEST_P(HalfLayerTest, BatchNormalization) {
  const size_t width = n();
  if (b() == 0) GTEST_SKIP();
  ForWrites([&](ElementType type, Write write, float before) {
    for (const BatchNormEpilogue& epilogue : {BatchNormEpilogue{}, BatchNormEpilogue{true, {}},
                                              BatchNormEpilogue{true, {0.4f, 3, 4}}}) {
      const Typed x = RandomOf(type, b() * width), dy = RandomOf(type, x.size());
      const Floats gamma(Random(width, 0.5, 2)), beta(Random(width));
      Floats mean(width), inv_std(width), running_mean(width), running_var(width, 1.0f);
      Floats half_mean(width), half_std(width), half_running(width), half_var(width, 1.0f);
      Floats scratch(BatchNormScratchFloats(b(), width));
      BatchNormStatistics(x.half(), 0.1f, 1e-5f, half_mean.data(), half_std.data(),
                          half_running.data(), half_var.data(), b(), width, scratch.data(),
                          stream());
      BatchNormStatistics(x.floats(), 0.1f, 1e-5f, mean.data(), inv_std.data(), running_mean.data(),
                          running_var.data(), b(), width, scratch.data(), stream());
      ExpectSame(mean, half_mean);
      ExpectSame(running_var, half_var);
      Typed y(type, x.size(), 100), dx(type, x.size(), before);
      BatchNormForward(x.half(), mean.data(), inv_std.data(), gamma.data(), beta.data(), epilogue,
                       y.half(), b(), width, stream());
      BatchNormForward(x.floats(), mean.data(), inv_std.data(), gamma.data(), beta.data(), epilogue,
                       y.floats(), b(), width, stream());
      y.ExpectRounded();
      // Both get the rounded y: it may be zero where the float y is not, and would cut differently.
      Convert(std::as_const(y).half(), y.floats(), y.size(), stream());
      Floats dgamma(width), dbeta(width), half_dgamma(width), half_dbeta(width);
      BatchNormBackward(x.half(), y.half(), dy.half(), mean.data(), inv_std.data(), gamma.data(),
                        epilogue, write, dx.half(), half_dgamma.data(), half_dbeta.data(), b(),
                        width, scratch.data(), stream());
      BatchNormBackward(x.floats(), y.floats(), dy.floats(), mean.data(), inv_std.data(),
                        gamma.data(), epilogue, write, dx.floats(), dgamma.data(), dbeta.data(),
                        b(), width, scratch.data(), stream());
      ExpectSame(dbeta, half_dbeta);
      dx.ExpectRounded();
      Typed inferred(type, x.size(), 100);
      BatchNormInference(x.half(), running_mean.data(), running_var.data(), 1e-5f, gamma.data(),
                         beta.data(), epilogue.relu, inferred.half(), b(), width, stream());
      BatchNormInference(x.floats(), running_mean.data(), running_var.data(), 1e-5f, gamma.data(),
                         beta.data(), epilogue.relu, inferred.floats(), b(), width, stream());
      inferred.ExpectRounded();
    }
  });
}

// The scale is applied before rounding, so values too small for a half do not underflow.
TEST_P(HalfLayerTest, LossesScaleTheirGradients) {
  const Floats scale(1, 1024.0f);
  const size_t labels_num = n(), size = b() * labels_num;
  ForTypes([&](ElementType type) {
    const Typed x = RandomOf(type, 2 * size, -8, 8);
    Doubles label(size);
    for (double& v : label) v = static_cast<double>(RandomIndex(2));
    const Floats labels(label), weights(Random(labels_num, 0.5, 2));
    Floats scratch(BceLossScratchFloats(2 * size) + LabelLossScratchFloats(2 * size));
    const auto check = [&](size_t logits, const auto& loss) {
      Typed dx(type, logits, 100);
      Array<double> half_loss(1, 7.0), float_loss(1, 7.0);
      loss(std::as_const(x).half(), half_loss.data(), ScaledValues(dx.half(), scale.data()));
      loss(x.floats(), float_loss.data(), ScaledValues(dx.floats(), scale.data()));
      dx.ExpectRounded();
      EXPECT_NEAR(half_loss.Read()[0], float_loss.Read()[0], 1e-9);
      Floats plain(logits, kUnset);
      loss(x.floats(), float_loss.data(), ScaledValues(plain.data()));
      Scale(1024.0f, plain.data(), logits, stream());
      Floats scaled(logits, kUnset);
      Convert(ConstValues(dx.floats()), scaled.data(), logits, stream());
      ExpectSame(scaled, plain);
    };
    check(size, [&](ConstValues logits, double* loss, ScaledValues dx) {
      BceLoss(logits, labels.data(), loss, dx, size, size, scratch.data(), stream());
    });
    check(2 * size, [&](ConstValues logits, double* loss, ScaledValues dx) {
      TwoClassLoss(logits, labels.data(), loss, dx, size, size, scratch.data(), stream());
    });
    if (labels_num == 0) return;
    check(size, [&](ConstValues logits, double* loss, ScaledValues dx) {
      MultiLabelLoss(logits, labels.data(), weights.data(), loss, dx, b(), b(), labels_num,
                     scratch.data(), stream());
    });
  });
}

TEST_P(HalfLayerTest, Probabilities) {
  ForTypes([&](ElementType type) {
    const Typed x = RandomOf(type, 2 * b(), -8, 8);
    Floats p(2 * b(), kUnset), expected(2 * b(), kUnset);
    Sigmoid(x.half(), p.data(), 2 * b(), stream());
    Sigmoid(x.floats(), expected.data(), 2 * b(), stream());
    ExpectSame(expected, p);
    TwoClassProbability(x.half(), p.data(), b(), stream());
    TwoClassProbability(x.floats(), expected.data(), b(), stream());
    ExpectSame(expected, p);
  });
}

}  // namespace
}  // namespace cistern::op
