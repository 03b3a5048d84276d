#include <cstdlib>

#include "absl/strings/numbers.h"
#include "worker/model/config/config_readers.h"

namespace cistern::model {
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
                         "solver.mixed_precision requires float16: leave one of them out");
    }
  }
  if (!cistern.contains("loss_scale")) return precision;
  if (mixed) {
    return ConfigError("cistern.loss_scale",
                       "solver.mixed_precision sets the loss scale too: leave one of them out (to "
                       "keep this one, set cistern.activations to \"float16\")");
  }
  if (precision.activations != Activations::kFloat16) {
    return ConfigError("cistern.loss_scale",
                       "requires float16 in cistern.activations: float32 and bfloat16 represent "
                       "small gradients without a scale");
  }
  precision.loss_scale = ScaleNamed(cistern.at("loss_scale"));
  return precision;
}

}  // namespace cistern::model
