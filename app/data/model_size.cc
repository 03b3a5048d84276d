#include "app/data/model_size.h"

#include "absl/strings/str_format.h"

namespace cistern::app {

absl::Status CheckModelSize(model::ModelKind kind, const model::TemplateSizes& sizes,
                            const model::TemplateData& data) {
  constexpr double kMaxParameters = 1e8;
  double parameters = 0;
  if (kind == model::ModelKind::kDcnV2) {
    const double width = 1.0 * data.slot_num * sizes.vector + data.dense_dim;
    parameters = sizes.crosses * width * width;
  } else if (kind == model::ModelKind::kDlrm && !sizes.hidden.empty()) {
    const double pairs = 0.5 * data.slot_num * (data.slot_num + 1.0);
    parameters = pairs * sizes.hidden.front();
  }
  if (parameters <= kMaxParameters) return absl::OkStatus();
  return WithFix(
      WithOptions(
          absl::InvalidArgumentError(absl::StrFormat(
              "a %s of %d slots and %d dense features has %.0f million parameters in its network: "
              "they grow with the square of the columns",
              model::Word(kind), data.slot_num, data.dense_dim, parameters / 1e6)),
          {"model", "ignore"}),
      "dcn or deepfm, or fewer columns");
}

}  // namespace cistern::app
