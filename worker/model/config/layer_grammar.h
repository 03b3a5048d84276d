// What the file of a dense layer uses to describe its type (worker/model/layer).
#pragma once

#include <string>
#include <vector>

#include "worker/model/config/grammar_keys.h"
#include "worker/model/config/model_config.h"

namespace cistern {

namespace grammar {

// The keys of every layer: name and type; and of every layer with inputs and outputs.
Keys LayerKeys();
Keys GraphKeys();

// A key that chooses initial weights: an InitKind.
KeyGrammar Init(BoundName name, std::string meaning, std::string otherwise);

}  // namespace grammar

// A dense layer whose objects have `keys` beside GraphKeys. read: for what the rows of the keys do
// not store; may be null.
LayerGrammar DenseLayer(const std::string& type, grammar::Keys keys, LayerReader read,
                        LayerMaker make, std::string note = "");

// The same for a type with parameters of its own: the rows name members of `Parameters`, and the
// layer finds its values by LayerSite::own.
template <typename Parameters>
LayerGrammar DenseLayerOf(const std::string& type, grammar::Keys keys, LayerMaker make) {
  LayerGrammar layer = DenseLayer(type, std::move(keys), nullptr, make);
  layer.store_own = [](const grammar::Keys& rows, const Json& values, std::any* own) {
    StoreValues(rows, values, &own->emplace<Parameters>());
  };
  return layer;
}

}  // namespace cistern
