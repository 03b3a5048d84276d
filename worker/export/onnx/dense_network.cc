#include "worker/export/onnx/dense_network.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "worker/model/config/grammar.h"
#include "worker/model/layer/layer_site.h"

namespace cistern {
namespace {

// Readers of protocol buffers refuse a message of 2 GiB or more. The rest is for names and nodes.
constexpr uint64_t kMaxConstantBytes = (uint64_t{1} << 31) - (uint64_t{1} << 20);

absl::Status Error(const model::LayerConfig& layer, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(model::DescribeSite(layer), ": ", what));
}

// Where the parameters of each layer are, by the layer's path.
std::map<std::string, NetworkLayer> PlaceParameters(
    const std::vector<model::LayerSummary>& layers) {
  std::map<std::string, NetworkLayer> places;
  size_t weights = 0, running = 0;
  for (const model::LayerSummary& layer : layers) {
    places[layer.path] = {nullptr, weights, layer.parameters, running, layer.running};
    weights += layer.parameters;
    running += layer.running;
  }
  return places;
}

std::map<std::string, model::TensorShape> ShapesOf(const model::ModelConfig& config,
                                                   const std::vector<model::LayerSummary>& layers) {
  std::map<std::string, model::TensorShape> shapes;
  shapes[config.data.label_top] = {1, {config.data.label_dim}};
  if (!config.data.dense_top.empty()) shapes[config.data.dense_top] = {1, {config.data.dense_dim}};
  for (const model::SparseInputConfig& input : config.data.sparse) {
    if (!input.length_top.empty()) shapes[input.length_top] = {1, {input.sequence_num()}};
  }
  for (const model::LayerSummary& layer : layers) {
    for (size_t i = 0; i < layer.shapes.size(); ++i) shapes[layer.tops[i]] = layer.shapes[i];
  }
  return shapes;
}

// The bytes of the constants that the file holds for a layer.
uint64_t ConstantBytes(const NetworkLayer& layer, const DenseNetwork& network) {
  uint64_t bytes = (layer.weights + layer.running) * sizeof(float);
  if (layer.config->type == "Interaction") {  // an index for each pair of vectors
    bytes += network.shapes.at(layer.config->tops[0]).columns() * sizeof(int64_t);
  }
  return bytes;
}

absl::Status CheckSize(const DenseNetwork& network) {
  uint64_t bytes = 0, most = 0;
  const NetworkLayer* largest = nullptr;
  for (const NetworkLayer& layer : network.layers) {
    const uint64_t more = ConstantBytes(layer, network);
    bytes += more;
    if (more > most) {
      most = more;
      largest = &layer;
    }
  }
  if (bytes <= kMaxConstantBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the dense network has %d parameters and takes %.2f GB; an ONNX file holds less than 2.15 GB "
      "(the limit of protocol buffers). The largest layer, with %.2f GB, is %s: make it smaller",
      network.weights, static_cast<double>(bytes) * 1e-9, static_cast<double>(most) * 1e-9,
      model::DescribeSite(*largest->config)));
}

absl::Status CheckBottoms(const model::ModelConfig& config, const model::LayerConfig& layer,
                          const std::vector<std::string>& bottoms, const DenseNetwork& network) {
  for (const std::string& bottom : bottoms) {
    if (bottom == config.data.label_top) {
      return Error(layer, absl::StrCat("reads the label '", bottom,
                                       "', which is unknown when a model is served"));
    }
    if (network.shapes.at(bottom).columns() == 0) {
      return Error(layer, absl::StrCat("its bottom '", bottom,
                                       "' has no columns, which ONNX cannot express here: remove "
                                       "it from the model"));
    }
  }
  return absl::OkStatus();
}

// Reads the column "w" of a dense table; nothing if the model has no such table.
absl::StatusOr<std::vector<float>> ReadColumn(CommittedModel& model, const std::string& name) {
  const int table = FindDenseTable(model.schema(), name);
  if (table < 0) return std::vector<float>();
  CISTERN_ASSIGN_OR_RETURN(std::vector<float> cells, model.PullDense(static_cast<TableId>(table)));
  const size_t columns = static_cast<size_t>(model.schema().dense_tables(table).columns_size());
  if (columns < 2) return cells;
  for (size_t row = 0; row < cells.size() / columns; ++row) cells[row] = cells[row * columns];
  cells.resize(cells.size() / columns);
  return cells;
}

absl::Status Damaged(const CommittedModel& model, const NetworkLayer& layer,
                     const std::string& what) {
  return WithOptions(
      absl::DataLossError(absl::StrCat(model.name(), ": ", model::DescribeSite(*layer.config), ": ",
                                       what, "; export an earlier commit, DIR@COMMIT")),
      {"state"});
}

absl::Status CheckValues(const CommittedModel& model, const NetworkLayer& layer,
                         const DenseValues& values) {
  if (layer.first_weight + layer.weights > values.weights.size() ||
      layer.first_running + layer.running > values.running.size()) {
    return Damaged(model, layer, "the dense tables end before its parameters");
  }
  for (size_t i = 0; i < layer.weights; ++i) {
    const float weight = values.weights[layer.first_weight + i];
    if (std::isfinite(weight)) continue;
    return Damaged(model, layer, absl::StrCat("weight ", i, " is ", weight));
  }
  for (size_t i = 0; i < layer.running; ++i) {
    const float statistic = values.running[layer.first_running + i];
    const bool is_variance = i >= layer.running / 2;
    if (std::isfinite(statistic) && !(is_variance && statistic < 0)) continue;
    return Damaged(model, layer, absl::StrCat("running statistic ", i, " is ", statistic));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> BottomsOf(const model::LayerConfig& layer,
                                   const std::map<std::string, model::TensorShape>& shapes) {
  std::vector<std::string> bottoms;
  for (const std::string& bottom : layer.bottoms) {
    if (layer.type == "Concat" && shapes.at(bottom).columns() == 0) continue;
    bottoms.push_back(bottom);
  }
  return bottoms.empty() ? layer.bottoms : bottoms;
}

absl::StatusOr<DenseNetwork> FindDenseNetwork(const model::ModelConfig& config) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelSummary summary, model::Summarize(config));
  const std::map<std::string, NetworkLayer> places = PlaceParameters(summary.layers);
  DenseNetwork network;
  network.shapes = ShapesOf(config, summary.layers);
  for (const model::LayerConfig& layer : config.layers) {
    if (layer.is_loss()) network.loss = &layer;
  }
  network.used.insert(network.logit());
  for (auto layer = config.layers.rbegin(); layer != config.layers.rend(); ++layer) {
    const bool is_live =
        std::any_of(layer->tops.begin(), layer->tops.end(),
                    [&network](const std::string& top) { return network.uses(top); });
    if (!is_live || &*layer == network.loss) continue;
    const std::vector<std::string> bottoms = BottomsOf(*layer, network.shapes);
    CISTERN_RETURN_IF_ERROR(CheckBottoms(config, *layer, bottoms, network));
    network.used.insert(bottoms.begin(), bottoms.end());
    network.layers.push_back(places.at(layer->path));
    network.layers.back().config = &*layer;
    network.weights += network.layers.back().weights;
  }
  std::reverse(network.layers.begin(), network.layers.end());
  CISTERN_RETURN_IF_ERROR(CheckSize(network));
  return network;
}

absl::StatusOr<DenseValues> ReadDenseValues(const DenseNetwork& network, CommittedModel& model) {
  DenseValues values;
  CISTERN_ASSIGN_OR_RETURN(values.weights, ReadColumn(model, "dense"));
  CISTERN_ASSIGN_OR_RETURN(values.running, ReadColumn(model, "dense_state"));
  for (const NetworkLayer& layer : network.layers) {
    CISTERN_RETURN_IF_ERROR(CheckValues(model, layer, values));
  }
  return values;
}

}  // namespace cistern
