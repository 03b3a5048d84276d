#include "serve/server/metadata.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/version.h"

namespace cistern {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<TensorSpec> InputsOf(const PredictorShape& shape) {
  std::vector<TensorSpec> inputs;
  if (shape.dense_dim > 0) {
    inputs.push_back({"dense", "FP32", {-1, static_cast<int64_t>(shape.dense_dim)}});
  }
  for (const PredictorShape::Input& input : shape.inputs) {
    inputs.push_back({absl::StrCat(input.name, ".keys"), "INT64", {-1}});
    inputs.push_back({absl::StrCat(input.name, ".offsets"), "INT32", {-1}});
  }
  return inputs;
}

std::vector<TensorSpec> OutputsOf(const PredictorShape& shape) {
  return {{kProbability, "FP32", {-1, static_cast<int64_t>(shape.label_dim)}},
          {kCommit, "INT64", {1}},
          {kUnseenKeys, "INT64", {1}},
          {kOutput0, "FP32", {-1}}};
}

OrderedJson TensorsJson(const std::vector<TensorSpec>& tensors) {
  OrderedJson list = OrderedJson::array();
  for (const TensorSpec& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"datatype", tensor.datatype}, {"shape", tensor.shape}});
  }
  return list;
}

OrderedJson ConfigTensorsJson(const std::vector<TensorSpec>& tensors) {
  OrderedJson list = OrderedJson::array();
  for (const TensorSpec& tensor : tensors) {
    list.push_back({{"name", tensor.name},
                    {"data_type", absl::StrCat("TYPE_", tensor.datatype)},
                    {"dims", tensor.shape}});
  }
  return list;
}

// Names come from model files, which need not be UTF-8.
std::string TextOf(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

ServerMetadata DescribeServer(std::vector<std::string> extensions) {
  return {kServerName, kVersion, std::move(extensions)};
}

ModelMetadata DescribeModel(const Predictor& predictor) {
  return {predictor.name(), absl::StrCat(predictor.version().commit), InputsOf(predictor.shape()),
          OutputsOf(predictor.shape())};
}

std::string ServerMetadataJson(const ServerMetadata& server) {
  return TextOf(
      {{"name", server.name}, {"version", server.version}, {"extensions", server.extensions}});
}

std::string ModelMetadataJson(const ModelMetadata& model) {
  return TextOf({{"name", model.name},
                 {"versions", OrderedJson::array({model.version})},
                 {"platform", kPlatform},
                 {"inputs", TensorsJson(model.inputs)},
                 {"outputs", TensorsJson(model.outputs)}});
}

std::string ModelConfigJson(const ModelMetadata& model, size_t max_samples, const Recipe* recipe) {
  OrderedJson parameters = {{"max_samples", {{"string_value", absl::StrCat(max_samples)}}},
                            {"commit", {{"string_value", model.version}}}};
  if (recipe != nullptr) {
    const std::string delimiter(1, recipe->layout.delimiter);
    parameters["text_columns"] = {
        {"string_value", absl::StrJoin(FeatureColumns(*recipe), delimiter)}};
    parameters["recipe"] = {{"string_value", HashText(*recipe)}};
  }
  return TextOf({{"name", model.name},
                 {"platform", kPlatform},
                 {"backend", kPlatform},
                 {"max_batch_size", 0},
                 {"input", ConfigTensorsJson(model.inputs)},
                 {"output", ConfigTensorsJson(model.outputs)},
                 {"parameters", parameters}});
}

}  // namespace cistern
