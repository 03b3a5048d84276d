#include "app/data/inspect_data.h"

#include "app/data/missing_file.h"
#include "worker/data/format/norm_format.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

// Inspects files in the format and shape of a model's Data layer.
absl::StatusOr<data::NormSummary> InspectAs(InspectDataOptions options) {
  CISTERN_ASSIGN_OR_RETURN(
      const model::ModelConfig config,
      model::LoadModelConfig(options.model, options.set, model::LayerGrammars()));
  data::DataSetOptions data = model::DataSetOf(config, "");
  if (options.source.empty()) {
    options.source = config.data.source;
    data.num_samples = config.data.num_samples;
  }
  if (data.format != data::DataFormat::kNorm) return data::InspectDataSet(options, data);
  options.key_bits = data.wide_keys ? 64 : 32;
  CISTERN_ASSIGN_OR_RETURN(data::NormSummary norm, data::InspectNorm(options));
  if (norm.shape.label_dim == data.shape.label_dim &&
      norm.shape.dense_dim == data.shape.dense_dim &&
      data::SlotNum(norm.shape) == data::SlotNum(data.shape)) {
    return norm;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      options.source, " has label_dim ", norm.shape.label_dim, ", dense_dim ", norm.shape.dense_dim,
      ", slot_num ", data::SlotNum(norm.shape), ", but ", options.model, " has ",
      data.shape.label_dim, ", ", data.shape.dense_dim, ", ", data::SlotNum(data.shape),
      ": change the model file to match the data; without a model the files describe themselves"));
}

}  // namespace

absl::StatusOr<data::NormSummary> InspectData(const InspectDataOptions& options) {
  if (!options.model.empty()) return MissingIsWrong(InspectAs(options));
  if (options.source.empty()) {
    return WithOptions(
        absl::InvalidArgumentError("name the files, or a model whose source to inspect"),
        {"model"});
  }
  return MissingIsWrong(data::InspectNorm(options));
}

}  // namespace cistern::app
