#include "worker/model/layer/weight_init.h"

#include <algorithm>
#include <cmath>

#include "common/base/philox.h"

namespace cistern::model {

WeightInit MakeWeightInit(InitKind kind, size_t in, size_t out, const WeightInit& fallback,
                          bool exact) {
  const double units = static_cast<double>(in + out);
  const double variance = 1.0 / std::max(1.0, units / 2);
  const double inputs = std::max(1.0, static_cast<double>(in > 0 ? in : out));
  switch (kind) {
    case InitKind::kDefault:
      return fallback;
    case InitKind::kKaimingNorm:
      return {WeightInit::Kind::kNormal, std::sqrt(2.0 / inputs)};
    case InitKind::kKaimingUniform:
      return {WeightInit::Kind::kUniform, std::sqrt(6.0 / inputs)};
    case InitKind::kTorchLinear:
      return {WeightInit::Kind::kUniform, 1.0 / std::sqrt(inputs)};
    case InitKind::kZero:
      return {WeightInit::Kind::kConstant, 0};
    case InitKind::kUniform:
      return {WeightInit::Kind::kUniform, 1.0 / std::max(1.0, units)};
    case InitKind::kXavierUniform:
      return {WeightInit::Kind::kUniform, std::sqrt(3 * variance)};
    case InitKind::kXavierNorm:
      return {WeightInit::Kind::kNormal, std::sqrt(variance) / (exact ? 1.0 : 0.87962566)};
  }
  return fallback;
}

bool DependsOnInputs(InitKind kind) {
  return kind == InitKind::kKaimingNorm || kind == InitKind::kKaimingUniform ||
         kind == InitKind::kTorchLinear;
}

void FillWeights(const WeightInit& init, uint64_t seed, size_t first, size_t count, float* out) {
  if (init.kind == WeightInit::Kind::kConstant || init.kind == WeightInit::Kind::kNamed) {
    std::fill_n(out, count, static_cast<float>(init.size));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const PhiloxBlock bits = Philox(seed, first + i, 0);
    const double x = init.kind == WeightInit::Kind::kUniform
                         ? 2.0 * UniformFromBits(bits.word[0]) - 1.0
                         : NormalFromBits(bits.word[0], bits.word[1]);
    out[i] = static_cast<float>(x * init.size);
  }
}

}  // namespace cistern::model
