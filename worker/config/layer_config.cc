// Dense layers and the loss.
#include "worker/config/config_readers.h"

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
  if (layer->selected.empty()) return ConfigError(path + ".selected", "names no slot");
  if (layer->leading_dim == 0) return absl::OkStatus();
  return ConfigError(path, "leading_dim and selected exclude each other");
}

absl::Status ReadLoss(const Json& json, const std::string& path, LayerConfig* layer) {
  layer->regularizer = json.value("regularizer", "");
  if (layer->regularizer.empty()) return absl::OkStatus();
  if (!json.contains("lambda")) {
    return ConfigError(path + ".lambda",
                       absl::StrCat("missing; regularizer ", layer->regularizer, " needs it"));
  }
  layer->lambda = json.at("lambda");
  return absl::OkStatus();
}

// The parameters of the types that have them.
absl::Status ReadParameters(const Json& json, const std::string& path, LayerConfig* layer) {
  if (layer->type == "InnerProduct") {
    const Json& fc = json.at("fc_param");
    layer->num_output = fc.at("num_output");
    layer->weight_init = ReadInit(fc, "weight_init");
    layer->bias_init = ReadInit(fc, "bias_init");
  } else if (layer->type == "BatchNorm") {
    const Json& bn = json.at("bn_param");
    layer->factor = bn.at("factor");
    layer->eps = bn.at("eps");
    layer->gamma_init = ReadInit(bn, "gamma_init");
    layer->beta_init = ReadInit(bn, "beta_init");
  } else if (layer->type == "Dropout") {
    layer->rate = json.at("rate");
  } else if (layer->type == "Slice") {
    layer->ranges = json.at("ranges").get<std::vector<std::pair<uint32_t, uint32_t>>>();
  } else if (layer->type == "Multiply") {
    layer->weight_dims = json.at("weight_dims").get<std::vector<uint32_t>>();
    layer->weight_init = ReadInit(json, "weight_init");
    if (layer->weight_dims.size() != 2) {
      return ConfigError(path + ".weight_dims",
                         absl::StrCat("expected [S, E], found ", json.at("weight_dims").dump()));
    }
  } else if (layer->type == "FmOrder2") {
    layer->out_dim = json.at("out_dim");
  } else if (layer->type == "ReduceSum") {
    layer->axis = json.at("axis");
  } else if (layer->type == "Reshape") {
    return ReadReshape(json, path, layer);
  } else if (layer->type == "BinaryCrossEntropyLoss") {
    return ReadLoss(json, path, layer);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LayerConfig> ReadLayer(const Json& json, const std::string& path) {
  LayerConfig layer;
  layer.name = LayerName(json);
  layer.type = json.at("type");
  layer.path = path;
  layer.bottoms = json.at("bottom").get<std::vector<std::string>>();
  layer.tops = json.at("top").get<std::vector<std::string>>();
  CISTERN_RETURN_IF_ERROR(ReadParameters(json, path, &layer));
  return layer;
}

}  // namespace cistern
