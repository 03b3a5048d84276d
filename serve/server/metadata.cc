#include "serve/server/metadata.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/version.h"

namespace cistern::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string ColumnsText(const data::Recipe& recipe) {
  return absl::StrJoin(data::FeatureColumns(recipe),
                       std::string(1, data::DelimiterOf(recipe.layout)));
}

// encoder: null: the model reads no text.
std::vector<TensorSpec> InputsOf(const PredictorShape& shape, const data::OwnedEncoder* encoder) {
  std::vector<TensorSpec> inputs;
  if (shape.dense_dim > 0) {
    inputs.push_back({"dense", "FP32", {-1, static_cast<int64_t>(shape.dense_dim)}});
  }
  for (const PredictorShape::Input& input : shape.inputs) {
    inputs.push_back({absl::StrCat(input.name, ".keys"), "INT64", {-1}});
    if (input.key_weights) inputs.push_back({absl::StrCat(input.name, ".weights"), "FP32", {-1}});
    inputs.push_back({absl::StrCat(input.name, ".offsets"), "INT32", {-1}});
  }
  if (encoder == nullptr) return inputs;
  const std::vector<std::string> columns = data::FeatureColumns(encoder->recipe());
  inputs.push_back({"text", "BYTES", {-1, static_cast<int64_t>(columns.size())}});
  inputs.back().columns = ColumnsText(encoder->recipe());
  for (TensorSpec& input : inputs) input.optional = true;
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
    if (!tensor.columns.empty()) list.back()["parameters"] = {{"columns", tensor.columns}};
  }
  return list;
}

OrderedJson ConfigTensorsJson(const std::vector<TensorSpec>& tensors) {
  OrderedJson list = OrderedJson::array();
  for (const TensorSpec& tensor : tensors) {
    list.push_back({{"name", tensor.name},
                    {"data_type", ConfigTypeOf(tensor.datatype)},
                    {"dims", tensor.shape}});
    if (tensor.optional) list.back()["optional"] = true;
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
  const std::shared_ptr<const data::OwnedEncoder> encoder = predictor.encoder();
  ModelMetadata model = {predictor.name(),
                         absl::StrCat(predictor.version().commit),
                         InputsOf(predictor.shape(), encoder.get()),
                         OutputsOf(predictor.shape()),
                         {}};
  model.parameters = {{"max_samples", absl::StrCat(predictor.max_samples())},
                      {"commit", model.version}};
  if (encoder == nullptr) return model;
  model.parameters.emplace_back("text_columns", ColumnsText(encoder->recipe()));
  model.parameters.emplace_back("recipe", data::HashTextOf(encoder->recipe()));
  return model;
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

std::string ConfigTypeOf(const std::string& datatype) {
  return absl::StrCat("TYPE_", datatype == "BYTES" ? "STRING" : datatype);
}

std::string ModelConfigJson(const ModelMetadata& model) {
  OrderedJson parameters = OrderedJson::object();
  for (const auto& [name, value] : model.parameters) parameters[name] = {{"string_value", value}};
  return TextOf({{"name", model.name},
                 {"platform", kPlatform},
                 {"backend", kPlatform},
                 {"max_batch_size", 0},
                 {"input", ConfigTensorsJson(model.inputs)},
                 {"output", ConfigTensorsJson(model.outputs)},
                 {"parameters", parameters}});
}

}  // namespace cistern::serve
