#include "worker/model/graph/precision.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace cistern::model {

ProductPrecision ProductsOf(const ModelConfig& config) {
  const std::string& word = config.cistern.gpu_products;
  if (word == "bfloat16") return ProductPrecision::kBfloat16;
  const bool tf32 = word.empty() ? config.solver.enable_tf32 : word == "tf32";
  return tf32 ? ProductPrecision::kTf32 : ProductPrecision::kFloat32;
}

ElementType ActivationsOf(const ModelConfig& config) {
  switch (config.precision.activations) {
    case Activations::kFloat16:
      return ElementType::kHalf;
    case Activations::kBfloat16:
      return ElementType::kBfloat16;
    case Activations::kFloat32:
      break;
  }
  return ElementType::kFloat;
}

op::LossScaling ScalingOf(const ModelConfig& config) {
  if (config.precision.activations != Activations::kFloat16) return op::LossScaling::kNone;
  return config.precision.loss_scale == 0 ? op::LossScaling::kDynamic : op::LossScaling::kConstant;
}

LossScale LossScaleOf(const op::GradientScaler& scaler, op::LossScaling scaling) {
  if (scaling != op::LossScaling::kDynamic) return {};
  return {static_cast<uint64_t>(scaler.loss_scale), scaler.good_steps};
}

absl::StatusOr<op::GradientScaler> ScalerWith(const LossScale& at) {
  if (!std::has_single_bit(at.scale) || at.scale > static_cast<uint64_t>(op::kLargestLossScale) ||
      at.good_steps >= op::kStepsToDoubleScale) {
    return absl::DataLossError(absl::StrCat("invalid loss scale ", at.scale, " after ",
                                            at.good_steps,
                                            " steps without overflow: no run reaches this state"));
  }
  op::GradientScaler scaler;
  scaler.loss_scale = static_cast<float>(at.scale);
  scaler.good_steps = static_cast<uint32_t>(at.good_steps);
  return scaler;
}

op::GradientScaler FirstScaler(const ModelConfig& config) {
  op::GradientScaler scaler;
  const op::LossScaling scaling = ScalingOf(config);
  if (scaling == op::LossScaling::kDynamic) scaler.loss_scale = op::kFirstLossScale;
  if (scaling == op::LossScaling::kConstant) {
    scaler.loss_scale = static_cast<float>(config.precision.loss_scale);
  }
  return scaler;
}

absl::Status NotFinite(const ModelConfig& config, const op::GradientScaler& scaler,
                       uint64_t number) {
  const bool is_loss = !std::isfinite(scaler.loss);
  return absl::DataLossError(absl::StrCat(
      config.path, ": the ", is_loss ? "loss" : "gradient", " of step ", number,
      is_loss || !std::isfinite(scaler.grad_norm)
          ? " is not a finite number"
          : absl::StrCat(" has a norm of ", scaler.grad_norm, ", too large to be squared"),
      ", so nothing was updated; try a lower learning rate, a warm-up or cistern.clip_norm, and "
      "check the dense features for such numbers",
      config.precision.activations == Activations::kFloat16
          ? "; an activation may exceed 65504, the float16 maximum (bfloat16 has the range of "
            "float32)"
          : "",
      "; cistern.not_finite=\"skip\" skips such steps"));
}

}  // namespace cistern::model
