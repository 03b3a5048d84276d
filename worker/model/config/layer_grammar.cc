#include "worker/model/config/layer_grammar.h"

#include "worker/model/config/json_document.h"

namespace cistern {

namespace grammar {

Keys LayerKeys() {
  return {String("name", "name of the layer in messages and overrides").Otherwise("top"),
          String("type", "layer type").Required()};
}

Keys GraphKeys() {
  return LayerKeys() + Keys{Strings("bottom", "input tensors").Required(),
                            Strings("top", "output tensors").Required()};
}

KeyGrammar Init(std::string name, std::string meaning, std::string otherwise) {
  return Word(std::move(name),
              {"KaimingNorm", "KaimingUniform", "TorchLinear", "Uniform", "XavierNorm",
               "XavierUniform", "Zero"},
              std::move(meaning))
      .Otherwise(std::move(otherwise));
}

}  // namespace grammar

LayerGrammar DenseLayer(const std::string& type, grammar::Keys keys, LayerReader read,
                        LayerMaker make, std::string note) {
  using grammar::operator+;
  return {type,
          LayerRole::kDense,
          {type, grammar::GraphKeys() + std::move(keys)},
          std::move(note),
          read,
          make};
}

InitKind ReadInit(const Json& json, const char* key) {
  const std::string word = json.value(key, "");
  if (word == "KaimingNorm") return InitKind::kKaimingNorm;
  if (word == "KaimingUniform") return InitKind::kKaimingUniform;
  if (word == "TorchLinear") return InitKind::kTorchLinear;
  if (word == "Uniform") return InitKind::kUniform;
  if (word == "XavierNorm") return InitKind::kXavierNorm;
  if (word == "XavierUniform") return InitKind::kXavierUniform;
  if (word == "Zero") return InitKind::kZero;
  return InitKind::kDefault;
}

}  // namespace cistern
