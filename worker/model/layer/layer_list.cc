#include "worker/model/layer/layer_list.h"

namespace cistern::model {

std::vector<LayerGrammar> DenseLayers() {
  return {
#define CISTERN_LAYER(Name) Describe##Name(),
      CISTERN_DENSE_LAYERS(CISTERN_LAYER)
#undef CISTERN_LAYER
  };
}

const std::vector<LayerGrammar>& LayerGrammars() {
  static const std::vector<LayerGrammar> grammars = WithDenseLayers(DenseLayers());
  return grammars;
}

}  // namespace cistern::model
