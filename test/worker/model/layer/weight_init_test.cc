#include "worker/model/layer/weight_init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace cistern::model {
namespace {

constexpr size_t kCount = 40000;

std::vector<float> Draw(const WeightInit& init, uint64_t seed = 1) {
  std::vector<float> weights(kCount);
  FillWeights(init, seed, 0, kCount, weights.data());
  return weights;
}

double Deviation(const std::vector<float>& x) {
  double sum = 0, squares = 0;
  for (float v : x) {
    sum += v;
    squares += double{v} * v;
  }
  const double n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 4 * std::sqrt(squares / n / n));  // four standard errors
  return std::sqrt(squares / n);
}

// Formulas of HugeCTR v2.3: variance 1 / max(1, (in + out) / 2).
TEST(WeightInit, FollowsTheFormulaOfItsKind) {
  const WeightInit none;
  const double variance = 2.0 / (300 + 100);
  EXPECT_NEAR(Deviation(Draw(MakeWeightInit(InitKind::kXavierNorm, 300, 100, none, true))),
              std::sqrt(variance), 0.015 * std::sqrt(variance));
  EXPECT_NEAR(Deviation(Draw(MakeWeightInit(InitKind::kXavierNorm, 300, 100, none, false))),
              std::sqrt(variance) / 0.87962566, 0.015 * std::sqrt(variance));
  const std::vector<float> uniform =
      Draw(MakeWeightInit(InitKind::kXavierUniform, 300, 100, none, false));
  EXPECT_NEAR(Deviation(uniform), std::sqrt(variance), 0.015 * std::sqrt(variance));
  EXPECT_LE(*std::max_element(uniform.begin(), uniform.end()), std::sqrt(3 * variance));
  const std::vector<float> flat = Draw(MakeWeightInit(InitKind::kUniform, 300, 100, none, false));
  EXPECT_LE(*std::max_element(flat.begin(), flat.end()), 1.0 / 400);
  EXPECT_GT(*std::max_element(flat.begin(), flat.end()), 0.99 / 400);
  EXPECT_EQ(Draw(MakeWeightInit(InitKind::kZero, 3, 1, none, false)), std::vector<float>(kCount));
  EXPECT_EQ(Draw(MakeWeightInit(InitKind::kDefault, 3, 1, {WeightInit::Kind::kConstant, 1}, false)),
            std::vector<float>(kCount, 1.0f));
}

// PyTorch 2.8, torch.nn.init with n_in = 300: kaiming_uniform_(a=sqrt(5)), which nn.Linear calls,
// is U(-b, b) with b = sqrt(2) / sqrt(1 + 5) * sqrt(3 / 300); kaiming_normal_ and kaiming_uniform_
// for ReLU have the standard deviation sqrt(2 / 300).
TEST(WeightInit, FollowsPytorchsFormulas) {
  const WeightInit none;
  const WeightInit linear = MakeWeightInit(InitKind::kTorchLinear, 300, 100, none, true);
  EXPECT_EQ(linear.kind, WeightInit::Kind::kUniform);
  EXPECT_NEAR(linear.size, std::sqrt(2.0) / std::sqrt(6.0) * std::sqrt(3.0 / 300), 1e-12);
  EXPECT_NEAR(Deviation(Draw(linear)), linear.size / std::sqrt(3.0), 0.015 * linear.size);
  for (const InitKind kind : {InitKind::kKaimingNorm, InitKind::kKaimingUniform}) {
    EXPECT_NEAR(Deviation(Draw(MakeWeightInit(kind, 300, 100, none, true))), std::sqrt(2.0 / 300),
                0.015 * std::sqrt(2.0 / 300));
  }
}

TEST(WeightInit, AWeightDependsOnlyOnSeedAndPosition) {
  const WeightInit init = {WeightInit::Kind::kNormal, 0.1};
  const std::vector<float> whole = Draw(init);
  std::vector<float> part(50);
  FillWeights(init, 1, 1234, part.size(), part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 1234));
  EXPECT_NE(Draw(init, 2), whole);
}

}  // namespace
}  // namespace cistern::model
