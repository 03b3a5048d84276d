#include "app/data/generate_data.h"

#include <utility>

#include "app/data/missing_file.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/output_folder.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

// Refuses options that would have no effect.
absl::Status CheckBesideModel(const GenerateDataOptions& options) {
  if (options.model.empty()) {
    if (options.set.empty()) return absl::OkStatus();
    return WithOptions(absl::InvalidArgumentError("overrides need a model"), {"set", "model"});
  }
  const std::string option = OptionBesideModel(options);
  if (option.empty()) return data::OutputFolder::CheckSpares(options.out, {options.model});
  return WithOptions(
      absl::InvalidArgumentError("the model's Data layer decides this; override it there"),
      {option, "set"});
}

// Takes shape and format from the model's Data layer.
absl::Status ReadModel(const GenerateDataOptions& options, data::DataSetOptions* data) {
  const absl::StatusOr<model::ModelConfig> config =
      MissingIsWrong(model::LoadModelConfig(options.model, options.set, model::LayerGrammars()));
  if (!config.ok()) return config.status();
  *data = model::DataSetOf(*config, "");
  for (size_t i = 0; i < data->shape.slot_nums.size(); ++i) {
    const uint32_t bound = data->shape.max_keys[i], slots = data->shape.slot_nums[i];
    if (bound == 0 || bound >= uint64_t{slots} * options.max_nnz) continue;
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            options.model, ": layers[0].sparse[", i, "] takes ", bound,
            " keys a sample, fewer than ", options.max_nnz, " in each of its ", slots, " slots")),
        {"max_nnz"});
  }
  return absl::OkStatus();
}

absl::Status ReadShape(const GenerateDataOptions& options, data::DataSetOptions* data) {
  data->format = options.format;
  data->check = options.check;
  data->wide_keys = options.key_bits == 64;
  data->float_label_dense = options.float_label_dense;
  const uint64_t slots = options.slots == 0 ? options.slot_sizes.size() : options.slots;
  if (slots == 0) {
    return WithOptions(absl::InvalidArgumentError("neither a model nor slots were given"),
                       {"model", "slots", "slot_sizes"});
  }
  constexpr uint64_t kMost = 1 << 20;
  if (options.labels > kMost || options.dense > kMost || slots > kMost) {
    return WithOptions(
        absl::InvalidArgumentError("labels, dense features and slots must be at most 1048576"),
        {"labels", "dense", "slots"});
  }
  data->shape.label_dim = static_cast<uint32_t>(options.labels);
  data->shape.dense_dim = static_cast<uint32_t>(options.dense);
  data->shape.slot_nums = {static_cast<uint32_t>(slots)};
  data->shape.max_keys = {0};
  return absl::OkStatus();
}

void FillSlotSizes(const GenerateDataOptions& options, data::DataSetOptions* data) {
  if (!options.slot_sizes.empty()) {
    data->slot_sizes = options.slot_sizes;
    data->slot_starts.clear();
  }
  if (!data->slot_sizes.empty()) return;
  data->slot_starts.resize(data->shape.slot_nums.size());
  for (size_t input = 0; input < data->shape.slot_nums.size(); ++input) {
    const std::vector<Key>& starts = data->slot_starts[input];
    for (uint32_t slot = 0; slot < data->shape.slot_nums[input]; ++slot) {
      data->slot_sizes.push_back(starts.empty() ? options.keys_per_slot
                                                : starts[slot + 1] - starts[slot]);
    }
  }
}

}  // namespace

absl::StatusOr<GeneratedData> GenerateData(GenerateDataOptions options,
                                           const std::function<bool(uint64_t)>& progress) {
  CISTERN_RETURN_IF_ERROR(CheckBesideModel(options));
  CISTERN_RETURN_IF_ERROR(options.model.empty() ? ReadShape(options, &options.data)
                                                : ReadModel(options, &options.data));
  FillSlotSizes(options, &options.data);
  CISTERN_ASSIGN_OR_RETURN(data::GenerateSummary summary, data::Generate(options, progress));
  return GeneratedData{std::move(summary), std::move(options)};
}

std::string OptionBesideModel(const GenerateDataOptions& options) {
  if (options.model.empty()) return "";
  const GenerateDataOptions none;
  const std::pair<const char*, bool> given[] = {{"format", options.format != none.format},
                                                {"labels", options.labels != none.labels},
                                                {"dense", options.dense != none.dense},
                                                {"slots", options.slots != none.slots},
                                                {"check", options.check != none.check},
                                                {"key_bits", options.key_bits != none.key_bits},
                                                {"float_label_dense", options.float_label_dense}};
  for (const auto& [option, is_given] : given) {
    if (is_given) return option;
  }
  return "";
}

nlohmann::ordered_json JsonOf(const GeneratedData& generated) {
  const data::DataSetOptions& data = generated.made_with.data;
  nlohmann::ordered_json json;
  json["format"] = data::FormatName(data.format);
  json["source"] = generated.train_source;
  json["eval_source"] = generated.test_source;
  json["train_samples"] = generated.made_with.train_samples;
  json["test_samples"] = generated.made_with.test_samples;
  json["train_positives"] = generated.train_positives;
  json["test_positives"] = generated.test_positives;
  json["label_dim"] = data.shape.label_dim;
  json["dense_dim"] = data.shape.dense_dim;
  json["slot_num"] = data::SlotNum(data.shape);
  json["slot_size_array"] = data.slot_sizes;
  return json;
}

}  // namespace cistern::app
