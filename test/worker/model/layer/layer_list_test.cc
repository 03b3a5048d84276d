// A layer type that the library does not know.
#include "worker/model/layer/layer_list.h"

#include <gmock/gmock.h>

#include <set>

#include "cuda/op/dense/elu.h"
#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;
using ::testing::HasSubstr;

struct BendConfig {
  float softness = 0;
};

// y = x above 0, softness * (exp(x) - 1) below: an ELU under another name.
class BendLayer : public Layer {
 public:
  BendLayer(const LayerSite& site, Tensor* out)
      : Layer({site.bottoms()[0]}, {out}), config_(site.own<BendConfig>()) {}

  void Forward(const Step& step) override {
    op::Elu(input().value(), config_.softness, output().value(), step.size * output().shape.size(),
            step.stream);
  }
  void Backward(const Step& step) override {
    op::EluBackward(input().value(), config_.softness, output().grad(), input().write,
                    input().grad(), step.size * output().shape.size(), step.stream);
  }

 private:
  const BendConfig config_;
};

LayerOr MakeBend(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  return std::make_unique<BendLayer>(site, site.Define(site.shape()));
}

LayerGrammar DescribeBend() {
  return DenseLayerOf<BendConfig>(
      "Bend", {Number({"softness", &BendConfig::softness}, "slope at 0").Default("1").Above(0)},
      MakeBend);
}

std::vector<LayerGrammar> WithBend() {
  std::vector<LayerGrammar> layers = LayerGrammars();
  layers.push_back(DescribeBend());
  return layers;
}

std::string Text(const std::string& layer) {
  return WithSgd(OneSparse(), Embedding("emb", "data1", 5, "0") + "," +
                                  Simple("Reshape", "emb", "flat") + "," + layer + "," +
                                  FullyConnected("bent", "logit", 1));
}

TEST(LayerList, HasEachTypeOnceWithAMaker) {
  std::set<std::string> types;
  for (const LayerGrammar& layer : DenseLayers()) {
    EXPECT_TRUE(types.insert(layer.type).second) << layer.type;
    EXPECT_NE(layer.make == nullptr, layer.expand == nullptr) << layer.type;
    EXPECT_NE(FindLayerGrammar(layer.type, LayerGrammars()), nullptr) << layer.type;
  }
}

TEST(LayerList, ATypeOfSomebodyElseTrains) {
  ModelBench own(Text(Simple("Bend", "flat", "bent", R"("softness": 0.5)")), {}, 12, WithBend());
  ModelBench elu(Text(Simple("ELU", "flat", "bent", R"("elu_param": {"alpha": 0.5})")), {}, 12);
  for (uint64_t step = 1; step <= 3; ++step) {
    const data::HostBatch batch = own.batch(16, static_cast<uint32_t>(step));
    EXPECT_EQ(own.Train(batch, step).loss, elu.Train(batch, step).loss);
  }
  EXPECT_EQ(own.Dense(0), elu.Dense(0));
  EXPECT_EQ(own.Weights(0), elu.Weights(0));
}

TEST(LayerList, ATypeOfSomebodyElseIsCheckedLikeTheOthers) {
  const std::string text = Text(Simple("Bend", "flat", "bent", R"("softness": -1)"));
  const absl::Status bound = ParseModelConfig(text, "m", {}, WithBend()).status();
  EXPECT_THAT(std::string(bound.message()), HasSubstr("layers[3].softness: expected"));
  const absl::Status unknown = ParseModelConfig(text, "m", {}, LayerGrammars()).status();
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("unknown layer type 'Bend'"));
}

}  // namespace
}  // namespace cistern::model
