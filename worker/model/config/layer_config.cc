// Reader of the dense layers and the loss.
#include "worker/model/config/config_readers.h"
#include "worker/model/config/key_binding.h"

namespace cistern::model {
namespace {

bool IsOfEveryLayer(const std::string& key) {
  return key == "type" || key == "bottom" || key == "top";
}

// A number is the same with and without a fraction of 0.
std::string TextOf(const Json& value) {
  return value.is_number_float() ? absl::StrCat(value.get<double>()) : value.dump();
}

void AddValues(const std::vector<KeyGrammar>& keys, const Json& json, LayerConfig* layer) {
  for (const KeyGrammar& key : keys) {
    const auto value = json.find(key.name);
    if (key.store != nullptr && !key.for_training && !IsOfEveryLayer(key.name)) {
      layer->values.emplace_back(key.name, value == json.end() ? "absent" : TextOf(*value));
    } else if (key.kind == JsonKind::kObject && value != json.end()) {
      AddValues(key.object->keys, *value, layer);
    }
  }
}

}  // namespace

absl::StatusOr<LayerConfig> ReadLayer(const LayerGrammar& type, const Json& json,
                                      const std::string& path, Notes* notes) {
  LayerConfig layer;
  layer.name = LayerName(json);
  layer.path = path;
  layer.make = type.make;
  StoreValues(type.object.keys, json, &layer);
  if (type.store_own != nullptr) type.store_own(type.object.keys, json, &layer.own_config);
  if (type.read != nullptr) CISTERN_RETURN_IF_ERROR(type.read(json, path, &layer));
  AddValues(type.object.keys, json, &layer);
  if (layer.is_loss() && json.contains("lambda") && layer.own<LossConfig>().regularizer.empty()) {
    notes->push_back(path + ".lambda: ignored: no regularizer is set");
  }
  return layer;
}

}  // namespace cistern::model
