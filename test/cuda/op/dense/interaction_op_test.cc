// DLRM's interaction, the cross network, products of tensors, ELU, and the losses over several
// classes and labels.
#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/elu.h"
#include "cuda/op/dense/multi_cross.h"
#include "cuda/op/dense/product.h"
#include "cuda/op/loss/label_loss.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kInteractionTolerance = 3e-5;

class InteractionOpTest : public OpTest {
 protected:
  size_t count() const { return b() * k() * n(); }
};

// b samples, k slots, n floats per vector.
TEST_P(InteractionOpTest, DotInteractionIsTheLowerTriangle) {
  const size_t columns = DotInteractionColumns(k(), n());
  ASSERT_EQ(columns, n() + k() * (k() + 1) / 2 + 1);
  const Doubles mlp = Random(b() * n()), slots = Random(count()), dy = Random(b() * columns);
  const auto forward = [&](const Doubles& mlp_, const Doubles& slots_) {
    Doubles y;
    for (size_t r = 0; r < b(); ++r) {
      const auto at = [&](size_t i, size_t e) {
        return i == 0 ? mlp_[r * n() + e] : slots_[(r * k() + i - 1) * n() + e];
      };
      for (size_t e = 0; e < n(); ++e) y.push_back(at(0, e));
      for (size_t i = 1; i <= k(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          double dot = 0;
          for (size_t e = 0; e < n(); ++e) dot += at(i, e) * at(j, e);
          y.push_back(dot);
        }
      }
      y.push_back(0);
    }
    return y;
  };
  Floats y(b() * columns, kUnset);
  DotInteraction(Floats(mlp).data(), Floats(slots).data(), y.data(), b(), k(), n(), stream());
  ExpectNear(forward(mlp, slots), y, kInteractionTolerance);

  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dmlp = Gradient(mlp.size(), write), dslots = Gradient(slots.size(), write);
    DotInteractionBackward(Floats(mlp).data(), Floats(slots).data(), Floats(dy).data(), write,
                           dmlp.data(), write, dslots.data(), b(), k(), n(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v, slots)); }, mlp, dmlp,
                   kInteractionTolerance, Base(write));
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(mlp, v)); }, slots, dslots,
                   kInteractionTolerance, Base(write));
  }
}

// b samples of n floats; k from 0 to 33 gives 1 to 6 crosses.
TEST_P(InteractionOpTest, MultiCrossIsTheRecursion) {
  const size_t layers = 1 + k() % 6;
  const Doubles x = Random(b() * n()), dy = Random(b() * n());
  const double small = 1 / std::sqrt(static_cast<double>(n() + 1));
  const Doubles parameters = Random(2 * layers * n(), -small, small);
  const auto forward = [&](const Doubles& x_, const Doubles& w_) {
    Doubles y = x_;
    for (size_t l = 0; l < layers; ++l) {
      for (size_t r = 0; r < b(); ++r) {
        double dot = 0;
        for (size_t c = 0; c < n(); ++c) dot += y[r * n() + c] * w_[2 * l * n() + c];
        for (size_t c = 0; c < n(); ++c) {
          y[r * n() + c] += x_[r * n() + c] * dot + w_[(2 * l + 1) * n() + c];
        }
      }
    }
    return y;
  };
  Floats scratch(MultiCrossScratchFloats(b(), layers, n()), kUnset), y(x.size(), kUnset);
  MultiCross(Floats(x).data(), Floats(parameters).data(), y.data(), b(), layers, n(),
             scratch.data(), stream());
  ExpectNear(forward(x, parameters), y, kInteractionTolerance);

  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(x.size(), write), dparameters(parameters.size(), kUnset);
    MultiCrossBackward(Floats(x).data(), Floats(parameters).data(), Floats(dy).data(), write,
                       dx.data(), dparameters.data(), b(), layers, n(), scratch.data(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v, parameters)); }, x, dx,
                   kInteractionTolerance, Base(write));
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(x, v)); }, parameters,
                   dparameters, kInteractionTolerance);
  }
}

TEST_P(InteractionOpTest, ProductMultipliesEveryFactor) {
  const size_t factors = 1 + k() % 4, size = b() * n();
  std::vector<Doubles> x;
  for (size_t f = 0; f < factors; ++f) x.push_back(Random(size));
  if (size > 0) x[0][0] = 0;  // the gradient of a zero factor is not zero
  const Doubles dy = Random(size);
  const auto forward = [&](const std::vector<Doubles>& x_) {
    Doubles y(size, 1.0);
    for (const Doubles& factor : x_) {
      for (size_t i = 0; i < size; ++i) y[i] *= factor[i];
    }
    return y;
  };
  std::vector<Floats> held(x.begin(), x.end());
  std::vector<ConstValues> pointers;
  for (const Floats& factor : held) pointers.emplace_back(factor.data());
  Floats y(size, kUnset);
  Product(pointers.data(), factors, y.data(), size, stream());
  ExpectNear(forward(x), y, 1e-6);
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    for (size_t f = 0; f < factors; ++f) {
      Floats dx = Gradient(size, write);
      ProductBackward(pointers.data(), factors, f, Floats(dy).data(), write, dx.data(), size,
                      stream());
      const auto loss = [&](const Doubles& v) {
        std::vector<Doubles> changed = x;
        changed[f] = v;
        return Dot(dy, forward(changed));
      };
      ExpectGradient(loss, x[f], dx, kInteractionTolerance, Base(write));
    }
  }
}

TEST_P(InteractionOpTest, EluIsExponentialBelowZero) {
  const double alpha = 0.75;
  const Doubles x = Random(count(), -6, 3), dy = Random(count());
  const auto forward = [&](const Doubles& v) {
    Doubles y = v;
    for (double& value : y) value = value < 0 ? alpha * (std::exp(value) - 1) : value;
    return y;
  };
  Floats y(count(), kUnset);
  Elu(Floats(x).data(), static_cast<float>(alpha), y.data(), count(), stream());
  ExpectNear(forward(x), y, 1e-6);
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write);
    EluBackward(Floats(x).data(), static_cast<float>(alpha), Floats(dy).data(), write, dx.data(),
                count(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v)); }, x, dx, 1e-6, Base(write));
  }
}

TEST_P(InteractionOpTest, TwoClassLossIsSoftmaxCrossEntropy) {
  const Doubles logits = Random(2 * count(), -6, 6), labels = Random(count(), 0, 1);
  const auto probability = [](const Doubles& x, size_t i, size_t of) {
    return std::exp(x[2 * i + of]) / (std::exp(x[2 * i]) + std::exp(x[2 * i + 1]));
  };
  const auto loss = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < count(); ++i) {
      sum -= std::log(probability(x, i, labels[i] < 0.5 ? 0 : 1));
    }
    return count() == 0 ? 0.0 : sum / static_cast<double>(count());
  };
  Floats dlogits(logits.size(), kUnset), scratch(LabelLossScratchFloats(count()), kUnset);
  Array<double> actual(1, -1);
  TwoClassLoss(Floats(logits).data(), Floats(labels).data(), actual.data(), dlogits.data(), count(),
               count(), scratch.data(), stream());
  EXPECT_NEAR(loss(logits), actual.Read()[0], 1e-6);
  ExpectGradient(loss, logits, dlogits, 1e-7);
  // With weights: that of sample i is the factor of its term.
  const Doubles weights = Random(count(), 0, 3);
  const auto weighted = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < count(); ++i) {
      sum -= weights[i] * std::log(probability(x, i, labels[i] < 0.5 ? 0 : 1));
    }
    return count() == 0 ? 0.0 : sum / static_cast<double>(count());
  };
  TwoClassLoss(Floats(logits).data(), {Floats(labels).data(), Floats(weights).data(), 1},
               actual.data(), dlogits.data(), count(), count(), scratch.data(), stream());
  EXPECT_NEAR(weighted(logits), actual.Read()[0], 1e-6);
  ExpectGradient(weighted, logits, dlogits, 1e-7);
  // With a weight of positives, and a prior.
  const double offset = -1.5;
  const auto shifted = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < count(); ++i) {
      const double margin = x[2 * i + 1] - x[2 * i] + offset;
      sum += labels[i] < 0.5 ? std::log1p(std::exp(margin)) : 4 * std::log1p(std::exp(-margin));
    }
    return count() == 0 ? 0.0 : sum / static_cast<double>(count());
  };
  Floats values(labels);
  WeightedLabels of_batch = values.data();
  of_batch.positive_weight = 4;
  of_batch.logit_offset = offset;
  TwoClassLoss(Floats(logits).data(), of_batch, actual.data(), dlogits.data(), count(), count(),
               scratch.data(), stream());
  EXPECT_NEAR(shifted(logits), actual.Read()[0], 2e-6);
  ExpectGradient(shifted, logits, dlogits, 1e-6);
  Floats p(count(), kUnset);
  TwoClassProbability(Floats(logits).data(), p.data(), count(), stream());
  Doubles expected(count());
  for (size_t i = 0; i < count(); ++i) expected[i] = probability(logits, i, 1);
  ExpectNear(expected, p, 1e-6);
}

TEST_P(InteractionOpTest, MultiLabelLossWeightsLabelsAndSkipsMaskedOnes) {
  const size_t labels_num = std::max<size_t>(1, n()), size = b() * labels_num;
  const Doubles logits = Random(size, -6, 6), weight = Random(labels_num, 0.1, 2);
  Doubles labels(size);
  for (double& label : labels) label = static_cast<double>(RandomIndex(3)) - 1;  // -1: masked
  const auto loss = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) {
      const double p = 1 / (1 + std::exp(-x[i]));
      if (labels[i] < 0) continue;
      sum -= weight[i % labels_num] * std::log(labels[i] > 0 ? p : 1 - p);
    }
    return size == 0 ? 0.0 : sum / static_cast<double>(size);
  };
  Floats dlogits(size, kUnset), scratch(LabelLossScratchFloats(size), kUnset);
  Array<double> actual(1, -1);
  MultiLabelLoss(Floats(logits).data(), Floats(labels).data(), Floats(weight).data(), actual.data(),
                 dlogits.data(), b(), b(), labels_num, scratch.data(), stream());
  EXPECT_NEAR(loss(logits), actual.Read()[0], 1e-6);
  ExpectGradient(loss, logits, dlogits, 1e-7);
  // The weight of a sample is that of all its labels.
  const Doubles weights = Random(b(), 0, 3);
  const auto weighted = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) {
      const double p = 1 / (1 + std::exp(-x[i]));
      if (labels[i] < 0) continue;
      sum -= weights[i / labels_num] * weight[i % labels_num] * std::log(labels[i] > 0 ? p : 1 - p);
    }
    return size == 0 ? 0.0 : sum / static_cast<double>(size);
  };
  MultiLabelLoss(Floats(logits).data(), {Floats(labels).data(), Floats(weights).data(), labels_num},
                 Floats(weight).data(), actual.data(), dlogits.data(), b(), b(), labels_num,
                 scratch.data(), stream());
  EXPECT_NEAR(weighted(logits), actual.Read()[0], 1e-6);
  ExpectGradient(weighted, logits, dlogits, 1e-7);
  // Positive labels that count more.
  const auto of_positives = [&](const Doubles& x) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) {
      const double p = 1 / (1 + std::exp(-x[i]));
      if (labels[i] < 0) continue;
      sum -= weight[i % labels_num] * (labels[i] > 0 ? 3 * std::log(p) : std::log(1 - p));
    }
    return size == 0 ? 0.0 : sum / static_cast<double>(size);
  };
  Floats values(labels);
  WeightedLabels of_batch = values.data();
  of_batch.positive_weight = 3;
  MultiLabelLoss(Floats(logits).data(), of_batch, Floats(weight).data(), actual.data(),
                 dlogits.data(), b(), b(), labels_num, scratch.data(), stream());
  EXPECT_NEAR(of_positives(logits), actual.Read()[0], 2e-6);
  ExpectGradient(of_positives, logits, dlogits, 1e-6);
}

TEST(LabelLoss, IsNotFiniteForNonFiniteLogits) {
  Stream stream;
  std::vector<float> scratch(LabelLossScratchFloats(1));
  const float one = 1;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const float label : {0.0f, 1.0f}) {
      const float logits[2] = {0, bad};
      float dlogits[2];
      double loss = 0;
      TwoClassLoss(logits, &label, &loss, dlogits, 1, 1, scratch.data(), stream);
      EXPECT_FALSE(std::isfinite(loss)) << bad << " " << label;
      loss = 0;
      MultiLabelLoss(logits + 1, &label, &one, &loss, dlogits, 1, 1, 1, scratch.data(), stream);
      EXPECT_FALSE(std::isfinite(loss)) << bad << " " << label;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, InteractionOpTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
