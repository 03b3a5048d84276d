#include "worker/model/config/layer_grammar.h"

namespace cistern::model {

namespace grammar {

Keys LayerKeys() {
  return {String("name", "name of the layer in messages and overrides").Otherwise("top"),
          String({"type", &LayerConfig::type}, "layer type").Required()};
}

Keys GraphKeys() {
  return LayerKeys() + Keys{Strings({"bottom", &LayerConfig::bottoms}, "input tensors").Required(),
                            Strings({"top", &LayerConfig::tops}, "output tensors").Required()};
}

KeyGrammar Init(BoundName name, std::string meaning, std::string otherwise) {
  return Word(std::move(name),
              {"KaimingNorm", "KaimingUniform", "TorchLinear", "Uniform", "XavierNorm",
               "XavierUniform", "Zero"},
              std::move(meaning))
      .Otherwise(std::move(otherwise))
      .ForTraining();
}

}  // namespace grammar

LayerGrammar DenseLayer(const LayerType& type, LayerMaker make, LayerReader read,
                        std::string note) {
  LayerGrammar layer = {
      type.name, LayerRole::kDense, {type.name, grammar::GraphKeys()}, std::move(note), read, make};
  layer.output = type.output;
  return layer;
}

}  // namespace cistern::model
