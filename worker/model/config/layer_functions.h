// The functions of a layer type. The layers are above this folder, so it knows their names alone.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern::model {

class Layer;         // worker/model/layer/layer.h
class LayerSite;     // worker/model/layer/layer_site.h
struct LayerConfig;  // model_config.h

// Reads what the rows of the grammar do not store, after they have stored the rest. path: of the
// layer, for errors about what a single key cannot express.
using LayerReader = absl::Status (*)(const nlohmann::ordered_json& json, const std::string& path,
                                     LayerConfig* layer);

// Reads a layer of the file that is several layers of the graph, and appends them. Their paths are
// those of the keys that describe them.
using LayerExpander = absl::Status (*)(const nlohmann::ordered_json& json, const std::string& path,
                                       std::vector<LayerConfig>* layers);

// Builds a layer at its place in the graph. A null layer has views as outputs and nothing to
// compute.
using LayerOr = absl::StatusOr<std::unique_ptr<Layer>>;
using LayerMaker = LayerOr (*)(const LayerSite& site);

}  // namespace cistern::model
