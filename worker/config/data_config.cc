// The Data layer.
#include <algorithm>
#include <set>

#include "worker/config/config_readers.h"

namespace cistern {
namespace {

SparseInputConfig ReadSparse(const Json& json) {
  SparseInputConfig input;
  input.top = json.at("top");
  input.type = json.at("type");
  input.slot_num = json.at("slot_num");
  // HugeCTR bounds a sample by both: min(max_nnz * slot_num, max_feature_num_per_sample).
  const uint64_t by_sample = json.at("max_feature_num_per_sample");
  const uint64_t by_slot = json.at("max_nnz").get<uint64_t>() * input.slot_num;
  const uint64_t bound = by_sample == 0 ? by_slot
                         : by_slot == 0 ? by_sample
                                        : std::min(by_sample, by_slot);
  input.max_feature_num = static_cast<uint32_t>(std::min<uint64_t>(bound, UINT32_MAX));
  return input;
}

absl::Status CheckTops(const DataConfig& data, const std::string& path) {
  std::set<std::string> tops;
  std::vector<std::string> all = {data.label_top};
  if (!data.dense_top.empty()) all.push_back(data.dense_top);
  for (const SparseInputConfig& input : data.sparse) all.push_back(input.top);
  for (const std::string& top : all) {
    if (top.empty()) return ConfigError(path, "a top is the empty string");
    if (!tops.insert(top).second) {
      return ConfigError(path, absl::StrCat("two tops are called '", top, "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DataConfig> ReadData(const Json& json, const std::string& path) {
  DataConfig data;
  data.format = json.at("format");
  if (data.format != "Norm") {
    return ConfigError(path + ".format",
                       absl::StrCat(data.format,
                                    " is not a format of this release; `cistern data "
                                    "convert` makes Norm files"));
  }
  data.source = json.at("source");
  data.eval_source = json.value("eval_source", "");
  data.check = json.at("check") == "Sum" ? NormCheck::kSum : NormCheck::kNone;
  data.label_top = json.at("label").at("top");
  data.label_dim = json.at("label").at("label_dim");
  if (json.contains("dense")) {
    data.dense_top = json.at("dense").at("top");
    data.dense_dim = json.at("dense").at("dense_dim");
  }
  for (const Json& sparse : json.at("sparse")) data.sparse.push_back(ReadSparse(sparse));
  CISTERN_RETURN_IF_ERROR(CheckTops(data, path));
  return data;
}

SampleShape ShapeOf(const DataConfig& data) {
  SampleShape shape;
  shape.label_dim = data.label_dim;
  shape.dense_dim = data.dense_dim;
  for (const SparseInputConfig& input : data.sparse) {
    shape.slot_nums.push_back(input.slot_num);
    shape.max_keys.push_back(input.max_feature_num);
  }
  return shape;
}

}  // namespace cistern
