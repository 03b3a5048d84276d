// Reader of the dense layers and the loss.
#include "worker/model/config/config_readers.h"
#include "worker/model/config/key_binding.h"

namespace cistern {
absl::StatusOr<LayerConfig> ReadLayer(const LayerGrammar& type, const Json& json,
                                      const std::string& path, Notes* notes) {
  LayerConfig layer;
  layer.name = LayerName(json);
  layer.path = path;
  layer.make = type.make;
  StoreValues(type.object.keys, json, &layer);
  if (type.store_own != nullptr) type.store_own(type.object.keys, json, &layer.own);
  if (type.read != nullptr) CISTERN_RETURN_IF_ERROR(type.read(json, path, &layer));
  if (json.contains("lambda") && layer.regularizer.empty()) {
    notes->push_back(path + ".lambda: ignored: no regularizer is set");
  }
  return layer;
}

}  // namespace cistern
