// Reader of the dense layers and the loss.
#include "worker/model/config/config_readers.h"
#include "worker/model/config/grammar.h"

namespace cistern {
namespace {

InitKind ReadInit(const Json& json, const char* key) {
  const std::string word = json.value(key, "");
  if (word == "Uniform") return InitKind::kUniform;
  if (word == "XavierNorm") return InitKind::kXavierNorm;
  if (word == "XavierUniform") return InitKind::kXavierUniform;
  if (word == "Zero") return InitKind::kZero;
  return InitKind::kDefault;
}

absl::Status ReadReshape(const Json& json, const std::string& path, LayerConfig* layer) {
  layer->leading_dim = json.value("leading_dim", 0u);
  if (!json.contains("selected")) return absl::OkStatus();
  layer->selected = json.at("selected").get<std::vector<uint32_t>>();
  if (layer->selected.empty()) return ConfigError(path + ".selected", "lists no slot");
  if (layer->leading_dim == 0) return absl::OkStatus();
  return ConfigError(path, "leading_dim and selected exclude each other");
}

absl::Status ReadLoss(const Json& json, const std::string& path, LayerConfig* layer) {
  if (json.contains("target_weight")) {
    layer->target_weight = json.at("target_weight").get<std::vector<float>>();
  }
  layer->regularizer = json.value("regularizer", "");
  if (layer->regularizer.empty()) return absl::OkStatus();
  if (!json.contains("lambda")) {
    return ConfigError(path + ".lambda",
                       absl::StrCat("missing; regularizer ", layer->regularizer, " needs it"));
  }
  layer->lambda = json.at("lambda");
  return absl::OkStatus();
}

absl::Status ReadMultiply(const Json& json, const std::string& path, LayerConfig* layer) {
  layer->weight_dims = json.at("weight_dims").get<std::vector<uint32_t>>();
  layer->weight_init = ReadInit(json, "weight_init");
  if (layer->weight_dims.size() == 2) return absl::OkStatus();
  return ConfigError(path + ".weight_dims",
                     absl::StrCat("expected [S, E], found ", json.at("weight_dims").dump()));
}

// Reads "weight_init" and "bias_init", and returns the object that holds them.
const Json& ReadInits(const Json& constants, LayerConfig* layer) {
  layer->weight_init = ReadInit(constants, "weight_init");
  layer->bias_init = ReadInit(constants, "bias_init");
  return constants;
}

void ReadBatchNorm(const Json& constants, LayerConfig* layer) {
  layer->factor = constants.at("factor");
  layer->eps = constants.at("eps");
  layer->gamma_init = ReadInit(constants, "gamma_init");
  layer->beta_init = ReadInit(constants, "beta_init");
}

// Reads the parameters that are specific to the layer's type.
absl::Status ReadParameters(const Json& json, const std::string& path, LayerConfig* layer) {
  const std::string& type = layer->type;
  if (type == "Reshape") return ReadReshape(json, path, layer);
  if (type == "Multiply") return ReadMultiply(json, path, layer);
  if (IsLoss(type)) return ReadLoss(json, path, layer);
  if (type == "InnerProduct" || type == "FusedInnerProduct") {
    layer->num_output = ReadInits(json.at("fc_param"), layer).at("num_output");
  } else if (type == "MultiCross") {
    layer->num_layers = ReadInits(json.at("mc_param"), layer).at("num_layers");
  } else if (type == "BatchNorm") {
    ReadBatchNorm(json.at("bn_param"), layer);
  } else if (type == "ELU") {
    layer->alpha = json.at("elu_param").at("alpha");
  } else if (type == "Dropout") {
    layer->rate = json.at("rate");
  } else if (type == "Slice") {
    layer->ranges = json.at("ranges").get<std::vector<std::pair<uint32_t, uint32_t>>>();
  } else if (type == "FmOrder2") {
    layer->out_dim = json.at("out_dim");
  } else if (type == "ReduceSum") {
    layer->axis = json.at("axis");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LayerConfig> ReadLayer(const Json& json, const std::string& path, Notes* notes) {
  LayerConfig layer;
  layer.name = LayerName(json);
  layer.type = json.at("type");
  layer.path = path;
  layer.bottoms = json.at("bottom").get<std::vector<std::string>>();
  layer.tops = json.at("top").get<std::vector<std::string>>();
  CISTERN_RETURN_IF_ERROR(ReadParameters(json, path, &layer));
  if (json.contains("lambda") && layer.regularizer.empty()) {
    notes->push_back(path + ".lambda: ignored: no regularizer is set");
  }
  return layer;
}

}  // namespace cistern
