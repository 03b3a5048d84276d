#include "worker/model/config/model_variant.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "worker/data/format/sequence_slots.h"

namespace cistern::model {
namespace {

using Json = nlohmann::ordered_json;

// "bottom" and "top" are a name or a list of names.
std::vector<std::string> NamesIn(const Json& layer, const char* key) {
  if (!layer.contains(key)) return {};
  const Json& names = layer.at(key);
  if (names.is_string()) return {names.get<std::string>()};
  return names.get<std::vector<std::string>>();
}

void Rename(const std::string& from, const std::string& to, const char* key, Json* layer) {
  if (!layer->contains(key)) return;
  Json& names = layer->at(key);
  if (names.is_string()) {
    if (names == from) names = to;
    return;
  }
  for (Json& name : names) {
    if (name == from) name = to;
  }
}

std::string TypeOf(const Json& layer) {
  return layer.value("type", "");
}

bool IsEmbedding(const Json& layer) {
  return layer.contains("sparse_embedding_hparam");
}

bool IsProduct(const Json& layer) {
  return TypeOf(layer) == "InnerProduct" || TypeOf(layer) == "FusedInnerProduct";
}

using Types = std::vector<LayerGrammar>;

LayerOutput OutputOf(const Json& layer, const Types& types) {
  const LayerGrammar* const type = FindLayerGrammar(TypeOf(layer), types);
  return type == nullptr ? LayerOutput::kOther : type->output;
}

bool IsActivation(const Json& layer, const Types& types) {
  return OutputOf(layer, types) == LayerOutput::kActivation;
}

// Layers between two products of one network.
bool IsBetween(const Json& layer, const Types& types) {
  return OutputOf(layer, types) >= LayerOutput::kShape;
}

// Indices of the layers that read a tensor.
std::vector<size_t> ReadersOf(const Json& layers, const std::string& tensor) {
  std::vector<size_t> readers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::vector<std::string> bottoms = NamesIn(layers[i], "bottom");
    if (std::count(bottoms.begin(), bottoms.end(), tensor) > 0) readers.push_back(i);
  }
  return readers;
}

// A product and the layers after it, up to the next product.
struct Block {
  std::vector<size_t> layers;
  bool hidden = false;  // has an activation
  std::string end;      // the tensor after it
};

Block BlockAt(const Json& layers, size_t product, const Types& types) {
  Block block;
  block.layers = {product};
  block.hidden = TypeOf(layers[product]) == "FusedInnerProduct";
  block.end = NamesIn(layers[product], "top").at(0);
  while (true) {
    const std::vector<size_t> readers = ReadersOf(layers, block.end);
    if (readers.size() != 1 || !IsBetween(layers[readers[0]], types)) return block;
    block.hidden = block.hidden || IsActivation(layers[readers[0]], types);
    block.layers.push_back(readers[0]);
    block.end = NamesIn(layers[readers[0]], "top").at(0);
  }
}

// Whether the block weighs another tensor, by a sigmoid that multiplies it.
bool IsGate(const Json& layers, const Block& block) {
  const std::vector<size_t> readers = ReadersOf(layers, block.end);
  return TypeOf(layers[block.layers.back()]) == "Sigmoid" &&
         std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
           return TypeOf(layers[reader]) == "DotProduct" ||
                  TypeOf(layers[reader]) == "ElementwiseMultiply";
         });
}

// The hidden blocks of the last network, first to last.
std::vector<Block> LastNetwork(const Json& layers, const Types& types) {
  std::vector<std::vector<Block>> networks;
  std::set<size_t> taken;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!IsProduct(layers[i]) || taken.count(i) > 0) continue;
    std::vector<Block> network;
    for (size_t at = i;;) {
      const Block block = BlockAt(layers, at, types);
      if (!block.hidden) break;
      network.push_back(block);
      taken.insert(at);
      const std::vector<size_t> readers = ReadersOf(layers, block.end);
      if (readers.size() != 1 || !IsProduct(layers[readers[0]])) break;
      at = readers[0];
    }
    if (!network.empty() && !IsGate(layers, network.back())) {
      networks.push_back(std::move(network));
    }
  }
  return networks.empty() ? std::vector<Block>() : networks.back();
}

// The number of hidden layers of an MLP: those with a ReLU before the first one without.
size_t HiddenLayersOf(const Json& layer) {
  const Json& constants = layer.at("mlp_param");
  const size_t count = constants.at("num_outputs").size();
  if (!constants.contains("activations")) {
    return constants.value("activation", "Relu") == "Relu" ? count : 0;
  }
  size_t hidden = 0;
  for (const Json& activation : constants.at("activations")) {
    if (activation != "Relu") break;
    ++hidden;
  }
  return hidden;
}

// The MLP that is the last network; nullopt if its layers are layers of the file, or there is none.
std::optional<size_t> LastMlp(const Json& layers, const Types& types) {
  const std::vector<Block> network = LastNetwork(layers, types);
  const size_t first = network.empty() ? 0 : network.front().layers.front();
  for (size_t i = layers.size(); i-- > first;) {
    if (TypeOf(layers[i]) == "MLP" && HiddenLayersOf(layers[i]) > 0) return i;
  }
  return std::nullopt;
}

// Repeats the last hidden layer of an MLP, or leaves out the last ones. Outputs that have names
// keep theirs.
void SetDepth(size_t depth, Json* layer) {
  Json& constants = layer->at("mlp_param");
  const size_t hidden = HiddenLayersOf(*layer);
  for (const char* key : {"num_outputs", "activations", "biases"}) {
    if (!constants.contains(key)) continue;
    Json list = Json::array();
    const Json& before = constants.at(key);
    for (size_t i = 0; i < depth; ++i) list.push_back(before.at(std::min(i, hidden - 1)));
    for (size_t i = hidden; i < before.size(); ++i) list.push_back(before.at(i));
    constants[key] = list;
  }
  const std::vector<std::string> tops = NamesIn(*layer, "top");
  if (tops.size() > 1) layer->at("top") = tops.back();
}

// Moves all readers of a tensor to another one.
void Reread(const std::string& from, const std::string& to, Json* layers) {
  for (Json& layer : *layers) Rename(from, to, "bottom", &layer);
}

std::set<std::string> AllNames(const Json& layers) {
  std::set<std::string> names;
  for (const Json& layer : layers) {
    if (layer.contains("name")) names.insert(layer.at("name").get<std::string>());
    for (const std::string& top : NamesIn(layer, "top")) names.insert(top);
  }
  return names;
}

void RepeatLast(Json* layers, const Types& types) {
  const Block last = LastNetwork(*layers, types).back();
  std::set<std::string> names = AllNames(*layers);
  const auto fresh = [&](const std::string& name) {
    std::string unused = name;
    for (int i = 2; !names.insert(unused).second; ++i) unused = name + "_" + std::to_string(i);
    return unused;
  };
  std::vector<Json> copies;
  std::string bottom = last.end;
  for (const size_t index : last.layers) {
    Json copy = layers->at(index);
    const std::string top = fresh(NamesIn(copy, "top").at(0));
    if (copy.contains("name")) copy["name"] = top;
    copy["bottom"] = bottom;
    copy["top"] = top;
    bottom = top;
    copies.push_back(std::move(copy));
  }
  Reread(last.end, bottom, layers);
  const size_t end = *std::max_element(last.layers.begin(), last.layers.end());
  Json all = Json::array();
  for (size_t i = 0; i < layers->size(); ++i) {
    all.push_back(layers->at(i));
    if (i != end) continue;
    for (Json& copy : copies) all.push_back(std::move(copy));
  }
  *layers = std::move(all);
}

void DropLast(Json* layers, const Types& types) {
  const Block last = LastNetwork(*layers, types).back();
  Reread(last.end, NamesIn(layers->at(last.layers[0]), "bottom").at(0), layers);
  Json kept = Json::array();
  for (size_t i = 0; i < layers->size(); ++i) {
    if (std::count(last.layers.begin(), last.layers.end(), i) == 0) kept.push_back(layers->at(i));
  }
  *layers = std::move(kept);
}

// The places of a sparse input (SparseInputConfig::places).
uint32_t PlacesOf(const Json& sparse) {
  const auto slots = sparse.at("slot_num").get<uint32_t>();
  data::SequenceSlots sequences;
  if (sparse.contains("sequence_lengths")) {
    const Json& lengths = sparse.at("sequence_lengths");
    sequences.lengths = lengths.is_array() ? lengths.get<std::vector<uint32_t>>()
                                           : std::vector<uint32_t>{lengths.get<uint32_t>()};
    if (sequences.lengths.size() == 1) sequences.lengths.resize(slots, sequences.lengths[0]);
  }
  return static_cast<uint32_t>(PlacesOf(sequences, slots));
}

// A tensor of embedding vectors: `slots` rows of `width` floats, side by side if flat.
struct Vectors {
  uint32_t slots = 0, width = 0, new_width = 0;
};

// Follows the vectors of the embeddings through the layers and resizes what repeats their size.
class Resizing {
 public:
  Resizing(Json* layers, uint32_t dim, uint32_t new_dim, const Types& types)
      : layers_(layers), dim_(dim), new_dim_(new_dim), types_(types) {}

  void Run() {
    for (Json& layer : *layers_) {
      if (IsEmbedding(layer)) {
        TakeEmbedding(&layer);
      } else {
        Follow(&layer);
      }
    }
    ResizeNetworks();
  }

 private:
  // The width of the rows' widest part: all of it, unless a Slice cuts the row.
  uint32_t DimOf(const std::string& top, uint32_t width) const {
    for (const size_t reader : ReadersOf(*layers_, top)) {
      const Json& layer = layers_->at(reader);
      if (TypeOf(layer) == "Reshape" && layer.value("leading_dim", 0u) == width) {
        return DimOf(NamesIn(layer, "top").at(0), width);
      }
      if (TypeOf(layer) != "Slice") continue;
      uint32_t widest = 0;
      for (const Json& range : layer.at("ranges")) {
        widest = std::max(widest, range[1].get<uint32_t>() - range[0].get<uint32_t>());
      }
      return widest;
    }
    return width;
  }

  uint32_t SlotsOf(const std::string& input) const {
    for (const Json& layer : *layers_) {
      if (!layer.contains("sparse")) continue;
      for (const Json& sparse : layer.at("sparse")) {
        if (sparse.at("top") == input) return PlacesOf(sparse);
      }
    }
    return 0;
  }

  void TakeEmbedding(Json* layer) {
    Json& size = layer->at("sparse_embedding_hparam").at("embedding_vec_size");
    const auto width = size.get<uint32_t>();
    const std::string top = NamesIn(*layer, "top").at(0);
    Vectors vectors{SlotsOf(NamesIn(*layer, "bottom").at(0)), width, width};
    if (width > 1 && DimOf(top, width) == dim_) {
      vectors.new_width = width - dim_ + new_dim_;
      size = vectors.new_width;
    }
    tensors_[top] = vectors;
  }

  void Follow(Json* layer) {
    const std::vector<std::string> bottoms = NamesIn(*layer, "bottom");
    const auto found = std::find_if(bottoms.begin(), bottoms.end(), [&](const std::string& name) {
      return tensors_.count(name) > 0;
    });
    const std::string type = TypeOf(*layer);
    if (type == "Multiply") FollowMultiply(layer);
    if (found == bottoms.end()) return;
    Vectors vectors = tensors_[*found];
    if (type == "Concat" && layer->value("axis", 0) == 1) {  // one below the other
      vectors.slots = 0;
      for (const std::string& bottom : bottoms) vectors.slots += tensors_[bottom].slots;
    }
    const std::vector<std::string> tops = NamesIn(*layer, "top");
    if (type == "Slice") return FollowSlice(vectors, tops, layer);
    if (type == "Reshape" && layer->contains("leading_dim")) {
      Json& leading = layer->at("leading_dim");
      if (leading == vectors.slots * vectors.width) {
        leading = vectors.slots * vectors.new_width;
      } else if (leading == vectors.width) {
        leading = vectors.new_width;
      }
    }
    if (type == "FmOrder2" && layer->at("out_dim") == vectors.width) {
      layer->at("out_dim") = vectors.new_width;
    }
    if (type == "DotProduct") GrowFactors(bottoms, vectors);
    if (OutputOf(*layer, types_) >= LayerOutput::kVectors) tensors_[tops.at(0)] = vectors;
  }

  // A cross layer multiplies what it reads by a product that is as wide.
  void GrowFactors(const std::vector<std::string>& bottoms, const Vectors& vectors) const {
    const uint32_t grown = vectors.slots * (vectors.new_width - vectors.width);  // modulo 2^32
    for (Json& layer : *layers_) {
      if (!IsProduct(layer)) continue;
      const std::string top = NamesIn(layer, "top").at(0);
      if (std::count(bottoms.begin(), bottoms.end(), top) == 0) continue;
      Json& width = layer.at("fc_param").at("num_output");
      width = width.get<uint32_t>() + grown;
    }
  }

  // Dense features that become vectors of the same size, beside those of the slots.
  void FollowMultiply(Json* layer) const {
    Json& dims = layer->at("weight_dims");
    if (dims.size() == 2 && dims[1] == dim_) dims[1] = new_dim_;
  }

  void FollowSlice(const Vectors& vectors, const std::vector<std::string>& tops, Json* layer) {
    Json& ranges = layer->at("ranges");
    uint32_t begin = 0, end = 0;  // of the widest range
    for (const Json& range : ranges) {
      const auto low = range[0].get<uint32_t>(), high = range[1].get<uint32_t>();
      if (high - low > end - begin) begin = low, end = high;
    }
    const uint32_t grown = vectors.new_width - vectors.width;  // modulo 2^32, as is the sum below
    for (size_t i = 0; i < ranges.size() && i < tops.size(); ++i) {
      const auto low = ranges[i][0].get<uint32_t>(), high = ranges[i][1].get<uint32_t>();
      const uint32_t new_low = low >= end ? low + grown : low;
      const uint32_t new_high = high >= end ? high + grown : high;
      ranges[i] = {new_low, new_high};
      tensors_[tops[i]] = {vectors.slots, high - low, new_high - new_low};
    }
  }

  // The network beside an Interaction ends with a vector of the same size.
  void ResizeNetworks() {
    for (const Json& interaction : *layers_) {
      if (TypeOf(interaction) != "Interaction") continue;
      std::string tensor = NamesIn(interaction, "bottom").at(0);
      for (size_t i = layers_->size(); i-- > 0;) {
        Json& layer = layers_->at(i);
        const std::vector<std::string> tops = NamesIn(layer, "top");
        if (std::count(tops.begin(), tops.end(), tensor) == 0) continue;
        if (IsProduct(layer) || TypeOf(layer) == "MLP") {
          Json& width = IsProduct(layer) ? layer.at("fc_param").at("num_output")
                                         : layer.at("mlp_param").at("num_outputs").back();
          if (width == dim_) width = new_dim_;
          break;
        }
        if (!IsBetween(layer, types_)) break;
        tensor = NamesIn(layer, "bottom").at(0);
      }
    }
  }

  Json* const layers_;
  const uint32_t dim_, new_dim_;
  const Types& types_;
  std::map<std::string, Vectors> tensors_;

 public:
  // The dim of the first embedding that has vectors. nullopt, too, with layers of sequences and
  // products of single vectors: the widths after them are not told by those of the vectors.
  static std::optional<uint32_t> First(Json* layers, const Types& types) {
    const Resizing resizing(layers, 0, 0, types);
    static const std::set<std::string> kOfSequences = {"HSTU", "MatrixMultiply", "ReduceMean",
                                                       "Select"};
    std::set<std::string> rows;  // tops of embeddings
    for (const Json& layer : *layers) {
      const std::vector<std::string> tops = NamesIn(layer, "top");
      if (IsEmbedding(layer)) rows.insert(tops.begin(), tops.end());
    }
    for (const Json& layer : *layers) {
      const std::vector<std::string> bottoms = NamesIn(layer, "bottom");
      const bool of_vectors =
          IsProduct(layer) && std::any_of(bottoms.begin(), bottoms.end(),
                                          [&](const auto& name) { return rows.count(name) > 0; });
      if (of_vectors || kOfSequences.count(TypeOf(layer)) > 0) return std::nullopt;
    }
    for (const Json& layer : *layers) {
      if (!IsEmbedding(layer)) continue;
      const auto width =
          layer.at("sparse_embedding_hparam").at("embedding_vec_size").get<uint32_t>();
      if (width > 1) return resizing.DimOf(NamesIn(layer, "top").at(0), width);
    }
    return std::nullopt;
  }
};

// Calls visit for each learning rate of the file, the one of the dense weights first.
template <typename Visit>
void ForEachRate(Json* model, const Visit& visit) {
  const auto in = [&](Json* optimizer) {
    for (auto& [key, value] : optimizer->items()) {
      if (absl::EndsWith(key, "_hparam") && value.contains("learning_rate")) {
        visit(&value["learning_rate"]);
      }
    }
  };
  in(&model->at("optimizer"));
  for (Json& layer : model->at("layers")) {
    if (layer.contains("optimizer")) in(&layer["optimizer"]);
  }
  if (!model->contains("cistern") || !model->at("cistern").contains("embeddings")) return;
  for (Json& embedding : model->at("cistern").at("embeddings")) {
    if (!embedding.contains("optimizer")) continue;
    if (embedding["optimizer"].contains("learning_rate")) {
      visit(&embedding["optimizer"]["learning_rate"]);
    }
  }
}

double RateOf(Json* model) {
  std::optional<double> rate;
  ForEachRate(model, [&](Json* value) {
    if (!rate) rate = value->get<double>();
  });
  return rate.value_or(0);
}

}  // namespace

ModelKnobs KnobsOf(const Json& model, const Types& types) {
  Json copy = model;
  ModelKnobs knobs;
  knobs.learning_rate = RateOf(&copy);
  knobs.dim = Resizing::First(&copy["layers"], types);
  const std::optional<size_t> mlp = LastMlp(copy["layers"], types);
  const size_t depth =
      mlp ? HiddenLayersOf(copy["layers"][*mlp]) : LastNetwork(copy["layers"], types).size();
  if (depth > 0) knobs.depth = static_cast<uint32_t>(depth);
  return knobs;
}

absl::StatusOr<Json> WithKnobs(Json model, const ModelKnobs& knobs, const Types& types) {
  const ModelKnobs before = KnobsOf(model, types);
  if (knobs.dim && (!before.dim || *knobs.dim == 0)) {
    return absl::InvalidArgumentError("the model has no embedding vectors to resize");
  }
  if (knobs.depth && (!before.depth || *knobs.depth == 0)) {
    return absl::InvalidArgumentError("the model has no hidden layers to repeat or leave out");
  }
  if (before.learning_rate > 0 && knobs.learning_rate > 0) {
    const double factor = knobs.learning_rate / before.learning_rate;
    ForEachRate(&model, [&](Json* rate) { *rate = rate->get<double>() * factor; });
    // Exactly the wanted number, without the rounding of the factor.
    bool first = true;
    ForEachRate(&model, [&](Json* rate) {
      if (std::exchange(first, false)) *rate = knobs.learning_rate;
    });
  }
  Json& layers = model["layers"];
  if (knobs.dim && knobs.dim != before.dim) Resizing(&layers, *before.dim, *knobs.dim, types).Run();
  if (const std::optional<size_t> mlp = LastMlp(layers, types); mlp && knobs.depth) {
    SetDepth(*knobs.depth, &layers[*mlp]);
  } else if (knobs.depth) {
    for (uint32_t depth = *before.depth; depth < *knobs.depth; ++depth) RepeatLast(&layers, types);
    for (uint32_t depth = *before.depth; depth > *knobs.depth; --depth) DropLast(&layers, types);
  }
  return model;
}

}  // namespace cistern::model
