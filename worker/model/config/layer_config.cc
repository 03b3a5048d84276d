// Reader of the dense layers and the loss.
#include "worker/model/config/config_readers.h"
#include "worker/model/config/grammar.h"

namespace cistern {
absl::StatusOr<LayerConfig> ReadLayer(const LayerGrammar& type, const Json& json,
                                      const std::string& path, Notes* notes) {
  LayerConfig layer;
  layer.name = LayerName(json);
  layer.type = json.at("type");
  layer.path = path;
  layer.bottoms = json.at("bottom").get<std::vector<std::string>>();
  layer.tops = json.at("top").get<std::vector<std::string>>();
  layer.make = type.make;
  if (type.read != nullptr) CISTERN_RETURN_IF_ERROR(type.read(json, path, &layer));
  if (json.contains("lambda") && layer.regularizer.empty()) {
    notes->push_back(path + ".lambda: ignored: no regularizer is set");
  }
  return layer;
}

}  // namespace cistern
