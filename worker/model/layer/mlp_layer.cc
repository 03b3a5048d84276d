// MLP (HugeCTR 3.x): InnerProduct and ReLU layers, one after another.
#include "worker/model/config/config_readers.h"
#include "worker/model/config/json_document.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using namespace grammar;

KeyGrammar ActivationWord(const std::string& name, const std::string& meaning) {
  return Word(name, {"Relu", "None", "Non"}, meaning);
}

const ObjectGrammar& MlpGrammar() {
  static const ObjectGrammar grammar{
      "mlp_param",
      {MakeKey("num_outputs", JsonKind::kCounts, "columns of the output of each layer")
           .Required()
           .AtLeast(1)
           .AtMost(1 << 20),
       ActivationWord("activation", "of each layer").Default("\"Relu\""),
       Strings("activations", "of each layer, instead of activation").Otherwise("activation"),
       Bool("use_bias", "whether each layer has biases").Default("true"),
       MakeKey("biases", JsonKind::kBools, "the same of each layer, instead of use_bias")
           .Otherwise("use_bias"),
       Init("weight_init", "initial weights", "XavierNorm"),
       Init("bias_init", "initial biases", "normal, standard deviation sqrt(1 / num_output)"),
       Anything("num_output", "ignored: HugeCTR writes it beside num_outputs")}};
  return grammar;
}

// What the file says of each layer.
struct MlpLayers {
  std::vector<uint32_t> widths;
  std::vector<std::string> activations;
  std::vector<bool> biases;
};

absl::StatusOr<MlpLayers> ReadLayersOfMlp(const Json& constants, const std::string& path) {
  MlpLayers layers;
  layers.widths = constants.at("num_outputs").get<std::vector<uint32_t>>();
  const size_t count = layers.widths.size();
  if (count == 0) return ConfigError(path + ".num_outputs", "lists no layer");
  layers.activations.assign(count, constants.at("activation"));
  layers.biases.assign(count, constants.at("use_bias"));
  if (constants.contains("activations")) {
    layers.activations = constants.at("activations").get<std::vector<std::string>>();
  }
  if (constants.contains("biases")) layers.biases = constants.at("biases").get<std::vector<bool>>();
  const std::pair<const char*, size_t> sizes[] = {{"activations", layers.activations.size()},
                                                  {"biases", layers.biases.size()}};
  for (const auto& [key, size] : sizes) {
    if (size == count) continue;
    return ConfigError(absl::StrCat(path, ".", key),
                       absl::StrCat("has ", size, " entries, and num_outputs has ", count));
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string& word = layers.activations[i];
    if (word == "Relu" || word == "None" || word == "Non") continue;
    return ConfigError(absl::StrCat(path, ".activations[", i, "]"),
                       absl::StrCat("expected Relu or None, found the string \"", word, "\""));
  }
  return layers;
}

// The names of the outputs: those of the file if it has one for each layer, or one for the last.
absl::StatusOr<std::vector<std::string>> OutputNames(const Json& json, const std::string& path,
                                                     size_t count) {
  const std::vector<std::string> tops = json.at("top").get<std::vector<std::string>>();
  if (tops.size() == count) return tops;
  if (tops.size() != 1) {
    return ConfigError(path + ".top", absl::StrCat("names ", tops.size(), " outputs of ", count,
                                                   " layers: name the last one, or each"));
  }
  std::vector<std::string> names;
  for (size_t i = 1; i < count; ++i) names.push_back(absl::StrCat(tops[0], "_", i));
  names.push_back(tops[0]);
  return names;
}

// The layer of the file that `type` would be by itself.
Json PieceOf(const LayerGrammar& type, const std::string& bottom, const std::string& top) {
  return {{"type", type.type}, {"bottom", {bottom}}, {"top", {top}}};
}

Json ProductOf(const Json& constants, uint32_t width, bool use_bias) {
  Json product = {{"num_output", width}, {"use_bias", use_bias}};
  if (constants.contains("weight_init")) product["weight_init"] = constants["weight_init"];
  if (constants.contains("bias_init") && use_bias) product["bias_init"] = constants["bias_init"];
  return product;
}

absl::Status ExpandMlp(const Json& json, const std::string& path,
                       std::vector<LayerConfig>* layers) {
  const LayerGrammar product = DescribeInnerProduct(), relu = DescribeRelu();
  const Json& constants = json.at("mlp_param");
  const std::string where = path + ".mlp_param";
  CISTERN_ASSIGN_OR_RETURN(const MlpLayers of, ReadLayersOfMlp(constants, where));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           OutputNames(json, path, of.widths.size()));
  const std::vector<std::string> bottoms = json.at("bottom").get<std::vector<std::string>>();
  if (bottoms.empty() || bottoms.size() > 2) {  // HugeCTR passes a gradient on by a second one
    return ConfigError(path + ".bottom",
                       absl::StrCat("names ", bottoms.size(), " inputs; an MLP has one"));
  }
  const auto add = [&](const LayerGrammar& type, const Json& piece,
                       const std::string& key) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(LayerConfig layer,
                             ReadLayer(type, piece, absl::StrCat(where, ".", key), nullptr));
    layers->push_back(std::move(layer));
    return absl::OkStatus();
  };
  std::string x = bottoms[0];
  for (size_t i = 0; i < of.widths.size(); ++i) {
    const bool has_relu = of.activations[i] == "Relu";
    const std::string top = has_relu ? names[i] + "_product" : names[i];
    Json piece = PieceOf(product, x, top);
    piece["fc_param"] = ProductOf(constants, of.widths[i], of.biases[i]);
    CISTERN_RETURN_IF_ERROR(add(product, piece, absl::StrCat("num_outputs[", i, "]")));
    x = names[i];
    if (!has_relu) continue;
    CISTERN_RETURN_IF_ERROR(add(relu, PieceOf(relu, top, x), absl::StrCat("activations[", i, "]")));
  }
  return absl::OkStatus();
}

}  // namespace

LayerGrammar DescribeMlp() {
  LayerGrammar grammar = DenseLayer("MLP", nullptr);
  grammar.object.keys.push_back(
      Object("mlp_param", JsonKind::kObject, MlpGrammar(), "the layers that it consists of")
          .Required());
  grammar.expand = ExpandMlp;
  return grammar;
}

}  // namespace cistern::model
