// What the file of a dense layer uses to describe its type (worker/model/layer).
#pragma once

#include <string>
#include <vector>

#include "worker/model/config/grammar_keys.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {

namespace grammar {

// The keys of every layer: name and type; and of every layer with inputs and outputs.
Keys LayerKeys();
Keys GraphKeys();

// A key that chooses initial weights: an InitKind.
KeyGrammar Init(BoundName name, std::string meaning, std::string otherwise);

}  // namespace grammar

// Stores the values of the keys that name members of `Config` in LayerConfig::own_config.
template <typename Config>
void StoreOwn(const grammar::Keys& keys, const Json& values, std::any* own_config) {
  StoreValues(keys, values, &own_config->emplace<Config>());
}

// A type by its name in model files, and its output beside its input.
struct LayerType {
  LayerType(const char* type, LayerOutput beside = LayerOutput::kOther)  // NOLINT: implicit
      : name(type), output(beside) {}

  const char* name;
  LayerOutput output;
};

// A dense layer whose objects have no keys beside GraphKeys.
//
// read: what the rows of the keys do not store or check; may be null. note: for the user, once for
// a file that has such a layer.
LayerGrammar DenseLayer(const LayerType& type, LayerMaker make, LayerReader read = nullptr,
                        std::string note = "");

// A dense layer whose objects have `keys`, too: the rows name members of `Config`, and the layer
// finds its values by LayerSite::own<Config>.
template <typename Config>
LayerGrammar DenseLayerOf(const LayerType& type, grammar::Keys keys, LayerMaker make,
                          LayerReader read = nullptr, std::string note = "") {
  using grammar::operator+;
  LayerGrammar layer = DenseLayer(type, make, read, std::move(note));
  layer.object.keys = std::move(layer.object.keys) + keys;
  layer.store_own = StoreOwn<Config>;
  return layer;
}

}  // namespace cistern::model
