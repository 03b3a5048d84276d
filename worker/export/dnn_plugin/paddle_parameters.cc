#include "worker/export/dnn_plugin/paddle_parameters.h"

#include <set>

#include "common/base/names.h"
#include "worker/model/layer/layer_configs.h"

namespace cistern {
namespace {

// Collects the parameters of one layer after the other.
class Collector {
 public:
  absl::Status Add(const model::LayerConfig& config, const model::LayerSummary& layer) {
    layer_ = &layer;
    const size_t count = layer.parameters, before = trained_, running_before = running_;
    if (layer.type == "InnerProduct" || layer.type == "FusedInnerProduct") {
      const auto& own = config.own<model::FullyConnectedConfig>();
      const size_t out = own.num_output, biases = own.use_bias ? out : 0;
      Take("w_0", {(count - biases) / out, out});
      if (own.use_bias) Take("b_0", {out});
    } else if (layer.type == "BatchNorm") {
      const size_t columns = count / 2;
      Take("w_0", {columns});
      Take("b_0", {columns});
      TakeRunning("w_1", columns);
      TakeRunning("w_2", columns);
    } else if (layer.type == "LayerNorm") {
      Take("w_0", {count / 2});
      Take("b_0", {count / 2});
    } else if (layer.type == "PReLU") {
      Take("w_0", {count});
    } else if (layer.type == "Multiply") {
      const std::vector<uint32_t>& dims = config.own<model::MultiplyConfig>().weight_dims;
      Take("w_0", {dims[0], dims[1]});
    } else if (layer.type == "MultiCross") {
      const auto& own = config.own<model::MultiCrossConfig>();
      for (size_t cross = 0; cross < own.num_layers; ++cross) {
        if (own.projection_dim > 0) {
          TakeLowRankCross(cross, count / own.num_layers, own.projection_dim);
          continue;
        }
        const size_t columns = count / (2 * own.num_layers);
        Take(absl::StrCat("w_", cross), {columns});
        Take(absl::StrCat("b_", cross), {columns});
      }
    }
    if (trained_ - before == count && running_ - running_before == layer.running) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("layer '", layer.name, "' (", layer.path, "): the type ", layer.type,
                     " has parameters for which Paddle's form is not known"));
  }

  std::vector<PaddleParameter> parameters;

 private:
  // Two weights and a bias for each cross.
  void TakeLowRankCross(size_t cross, size_t count, size_t rank) {
    const size_t columns = count / (2 * rank + 1);
    Take(absl::StrCat("w_", 2 * cross), {columns, rank});
    Take(absl::StrCat("w_", 2 * cross + 1), {rank, columns});
    Take(absl::StrCat("b_", cross), {columns});
  }
  void Take(const std::string& suffix, const std::vector<size_t>& dims) {
    Put(suffix, dims, /*running=*/false, &trained_);
  }
  void TakeRunning(const std::string& suffix, size_t columns) {
    Put(suffix, {columns}, /*running=*/true, &running_);
  }
  void Put(const std::string& suffix, const std::vector<size_t>& dims, bool running, size_t* next) {
    PaddleParameter& parameter = parameters.emplace_back();
    parameter.name = absl::StrCat(layer_->name, ".", suffix);
    parameter.layer = layer_->name;
    parameter.type = layer_->type;
    parameter.dims.assign(dims.begin(), dims.end());
    parameter.running = running;
    parameter.offset = *next;
    *next += parameter.count();
  }

  const model::LayerSummary* layer_ = nullptr;
  size_t trained_ = 0, running_ = 0;
};

absl::Status CheckLayerName(const model::LayerSummary& layer, std::set<std::string>* names) {
  const std::string site = absl::StrCat("layer '", layer.name, "' (", layer.path, ")");
  const absl::Status usable = CheckName(layer.name + ".w_0");
  if (!usable.ok()) {
    return AddContext(usable, site + ": its parameters need names of files");
  }
  if (names->insert(layer.name).second) return absl::OkStatus();
  return absl::InvalidArgumentError(
      site + ": another layer has this name, and parameters are named after their layers");
}

}  // namespace

size_t PaddleParameter::count() const {
  size_t product = 1;
  for (const int64_t dim : dims) product *= static_cast<size_t>(dim);
  return product;
}

absl::StatusOr<std::vector<PaddleParameter>> PaddleParametersOf(
    const model::ModelConfig& config, const model::ModelSummary& summary) {
  Collector collector;
  std::set<std::string> names;
  for (const model::LayerSummary& layer : summary.layers) {
    if (layer.parameters == 0 && layer.running == 0) continue;
    CISTERN_RETURN_IF_ERROR(CheckLayerName(layer, &names));
    const auto found =
        std::find_if(config.layers.begin(), config.layers.end(),
                     [&layer](const model::LayerConfig& one) { return one.path == layer.path; });
    if (found == config.layers.end()) {
      return absl::InternalError(absl::StrCat(layer.path, " is not a layer of the model file"));
    }
    CISTERN_RETURN_IF_ERROR(collector.Add(*found, layer));
  }
  return std::move(collector.parameters);
}

}  // namespace cistern
