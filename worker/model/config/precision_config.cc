#include <cstdlib>

#include "absl/strings/numbers.h"
#include "worker/model/config/config_readers.h"

namespace cistern {
namespace {

Activations ActivationsNamed(const std::string& word) {
  return word == "float16"    ? Activations::kFloat16
         : word == "bfloat16" ? Activations::kBfloat16
                              : Activations::kFloat32;
}

double ScaleNamed(const std::string& word) {
  double scale = 0;
  return absl::SimpleAtod(word, &scale) ? scale : 0;  // "dynamic"
}

}  // namespace

absl::StatusOr<PrecisionConfig> ReadPrecision(const Json& solver, const Json& cistern) {
  PrecisionConfig precision;
  const bool mixed = solver.contains("mixed_precision");
  if (mixed) {
    precision.activations = Activations::kFloat16;
    precision.loss_scale = ScaleNamed(solver.at("mixed_precision"));
  }
  if (cistern.contains("activations")) {
    precision.activations = ActivationsNamed(cistern.at("activations"));
    if (mixed && precision.activations != Activations::kFloat16) {
      return ConfigError("cistern.activations",
                         "solver.mixed_precision says float16: leave one of them out");
    }
  }
  if (!cistern.contains("loss_scale")) return precision;
  if (mixed) {
    return ConfigError("cistern.loss_scale",
                       "is solver.mixed_precision once more: leave one of them out (\"float16\" in "
                       "cistern.activations stands for mixed_precision without its number)");
  }
  if (precision.activations != Activations::kFloat16) {
    return ConfigError("cistern.loss_scale",
                       "is of float16 alone: float32 and bfloat16 hold small gradients as they are "
                       "(cistern.activations)");
  }
  precision.loss_scale = ScaleNamed(cistern.at("loss_scale"));
  return precision;
}

}  // namespace cistern
