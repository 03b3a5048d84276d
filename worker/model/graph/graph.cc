#include "worker/model/graph/graph.h"

#include <algorithm>
#include <optional>
#include <set>

#include "common/base/checked.h"
#include "worker/model/graph/fusion.h"
#include "worker/model/graph/graph_check.h"
#include "worker/model/graph/memory_plan.h"
#include "worker/model/layer/embedding_layers.h"
#include "worker/model/layer/sequence_lengths_layer.h"

namespace cistern::model {
namespace {

// Sizes that no machine has memory for. Each factor of a size has a bound of its own; these keep
// the products that are computed from them within 64 bits.
constexpr uint64_t kMaxColumns = uint64_t{1} << 34;     // of a sample in one tensor
constexpr uint64_t kMaxFloats = uint64_t{1} << 53;      // of a batch in one tensor
constexpr uint64_t kMaxParameters = uint64_t{1} << 40;  // of all dense layers

// where: the layer, for messages. parameters: of all layers so far.
absl::Status CheckSizes(const std::string& where, const std::vector<TensorShape>& outputs,
                        size_t batch, size_t parameters) {
  const auto error = [&where](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  };
  for (const TensorShape& shape : outputs) {
    std::optional<uint64_t> columns = 1;
    for (const size_t dim : shape.dims) {
      if (columns.has_value()) columns = CheckedMul(*columns, dim);
    }
    if (!columns.has_value() || *columns > kMaxColumns) {
      return error(absl::StrCat("its output ", shape.ToString(), " has more than ", kMaxColumns,
                                " columns"));
    }
    const std::optional<uint64_t> rows = CheckedMul(shape.rows, batch);
    const std::optional<uint64_t> floats = rows.has_value() ? CheckedMul(*rows, *columns) : rows;
    if (!floats.has_value() || *floats > kMaxFloats) {
      return error(absl::StrCat("its output ", shape.ToString(), " of ", batch,
                                " samples takes more than ", kMaxFloats,
                                " floats: lower its width, or solver.batchsize"));
    }
  }
  if (parameters <= kMaxParameters) return absl::OkStatus();
  return error(absl::StrCat("the model has more than ", kMaxParameters, " dense parameters"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> Graph::Create(const ModelConfig& config,
                                                     Parameters* parameters) {
  std::unique_ptr<Graph> graph(new Graph(config));
  CISTERN_RETURN_IF_ERROR(CheckGraph(config));
  CISTERN_RETURN_IF_ERROR(graph->Build(parameters));
  return graph;
}

absl::Status Graph::Build(Parameters* parameters) {
  planned_batch_ = std::max(config_.solver.batchsize, config_.solver.batchsize_eval);
  AddInputs();
  for (const LayerSummary& embedding : summaries_) {
    CISTERN_RETURN_IF_ERROR(CheckSizes(absl::StrCat("embedding '", embedding.name, "'"),
                                       embedding.shapes, planned_batch_, 0));
  }
  CISTERN_RETURN_IF_ERROR(AddLengths());
  CISTERN_RETURN_IF_ERROR(AddLayers(parameters));
  DropDeadLayers();
  AssignGradients();
  PlaceInConcats(DeviceKind::kCpu);  // Allocate does it again for a GPU
  PlanOverlap();
  return absl::OkStatus();
}

void Graph::AddInputs() {
  label_ = tensors_.Define(config_.data.label_top, {1, {config_.data.label_dim}});
  label_->storage->external = true;
  label_->storage->type = ElementType::kFloat;
  if (!config_.data.dense_top.empty()) {
    dense_ = tensors_.Define(config_.data.dense_top, {1, {config_.data.dense_dim}});
    dense_->storage->external = true;
  }
  for (size_t i = 0; i < config_.embeddings.size(); ++i) {
    const EmbeddingConfig& embedding = config_.embeddings[i];
    const size_t places = config_.data.sparse[embedding.input].places();
    Tensor* out = tensors_.Define(embedding.top, {1, {places, embedding.vec_size}});
    embeddings_.push_back(MakeEmbeddingLayer(embedding, i, places, out));
    summaries_.push_back(
        {embedding.name, "embedding", "", {embedding.bottom}, {embedding.top}, {}});
    summaries_.back().shapes = {out->shape};
    summarized_.push_back({out->storage});
  }
}

absl::Status Graph::AddLengths() {
  for (size_t i = 0; i < config_.data.sparse.size(); ++i) {
    const SparseInputConfig& input = config_.data.sparse[i];
    if (input.length_top.empty()) continue;
    if (!HoldsLengths(input, ActivationsOf(config_))) {
      return absl::InvalidArgumentError(
          absl::StrCat("sparse input '", input.top, "': its length_top '", input.length_top,
                       "' needs exact lengths, and mixed precision rounds those above ",
                       ActivationsOf(config_) == ElementType::kHalf ? "2048" : "256",
                       ": lower sequence_lengths, or train in float32"));
    }
    Tensor* out = tensors_.Define(input.length_top, {1, {input.sequence_num()}});
    dense_layers_.push_back(MakeSequenceLengthsLayer(input, i, out));
  }
  return absl::OkStatus();
}

absl::Status Graph::AddLayers(Parameters* parameters) {
  const std::vector<LayerConfig>& layers = config_.layers;
  const FusionPlan fusion = PlanFusion(layers);
  for (uint32_t i = 0; i < layers.size(); ++i) {
    if (layers[i].make == nullptr) {  // the loss
      CISTERN_RETURN_IF_ERROR(AddLoss(layers[i]));
      continue;
    }
    if (fusion.absorbed[i]) continue;
    std::vector<Tensor*> bottoms;
    for (const std::string& bottom : layers[i].bottoms) bottoms.push_back(tensors_.Find(bottom));
    const size_t before = parameters->count(), running_before = parameters->running_count();
    LayerOr layer =
        layers[i].make(LayerSite(config_, i, fusion.epilogues[i], bottoms, &tensors_, parameters));
    if (!layer.ok()) return layer.status();
    if (*layer != nullptr) dense_layers_.push_back(*std::move(layer));
    const Epilogue& epilogue = fusion.epilogues[i];
    const LayerConfig* last = epilogue.dropout != nullptr ? epilogue.dropout
                              : epilogue.relu != nullptr  ? epilogue.relu
                                                          : &layers[i];
    SummarizeLayer(layers[i], last->tops, parameters->count() - before);
    summaries_.back().running = parameters->running_count() - running_before;
    CISTERN_RETURN_IF_ERROR(CheckSizes(DescribeSite(layers[i]), summaries_.back().shapes,
                                       planned_batch_, parameters->count()));
    for (const LayerConfig* fused : {epilogue.relu, epilogue.dropout}) {
      if (fused != nullptr && fused != &layers[i]) SummarizeLayer(*fused, last->tops, 0);
    }
  }
  return absl::OkStatus();
}

// shaped_as: names of tensors with the shapes of the layer's tops.
void Graph::SummarizeLayer(const LayerConfig& layer, const std::vector<std::string>& shaped_as,
                           size_t parameters) {
  LayerSummary summary = {layer.name, layer.type, layer.path, layer.bottoms, layer.tops, {}};
  std::vector<const Storage*>& written = summarized_.emplace_back();
  for (const std::string& top : shaped_as) {
    const Tensor* tensor = tensors_.Find(top);
    summary.shapes.push_back(tensor->shape);
    written.push_back(tensor->storage);
  }
  summary.parameters = parameters;
  summaries_.push_back(std::move(summary));
}

absl::Status Graph::AddLoss(const LayerConfig& loss) {
  const auto error = [&loss](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(DescribeSite(loss), ": ", what));
  };
  if (loss.bottoms.size() != 2) return error("its bottoms must be [logit, label]");
  Tensor* logit = tensors_.Find(loss.bottoms[0]);
  Tensor* label = tensors_.Find(loss.bottoms[1]);
  if (label->storage != label_->storage) {
    return error(absl::StrCat("its second bottom must be the label '", label_->name, "', not '",
                              label->name, "'"));
  }
  if (logit->storage->external) return error("its logit is an input, not computed by any layer");
  CISTERN_ASSIGN_OR_RETURN(loss_, Loss::Create(loss, config_.cistern, *logit, *label));
  logit_ = logit;
  loss_config_ = &loss;
  SummarizeLayer(loss, {}, 0);
  return absl::OkStatus();
}

void Graph::DropDeadLayers() {
  std::set<const Storage*> needed = {logit_->storage};
  const auto is_needed = [&needed](Layer& layer) {
    return std::any_of(layer.outputs().begin(), layer.outputs().end(),
                       [&](const Tensor* t) { return needed.count(t->storage) > 0; });
  };
  for (auto it = dense_layers_.rbegin(); it != dense_layers_.rend(); ++it) {
    Layer& layer = **it;
    if (!is_needed(layer)) {
      has_dead_parameters_ |= layer.has_parameters();
      continue;
    }
    for (const Input& in : layer.inputs()) needed.insert(in.tensor->storage);
    live_.push_back(&layer);
  }
  for (auto it = embeddings_.rbegin(); it != embeddings_.rend(); ++it) {
    if (!is_needed(**it)) continue;
    live_.push_back(it->get());
    live_embeddings_.push_back(it->get());
  }
  std::reverse(live_.begin(), live_.end());
  std::reverse(live_embeddings_.begin(), live_embeddings_.end());
  for (Layer* layer : live_) {
    for (const Input& in : layer->inputs()) ++in.tensor->storage->readers;
  }
  MarkDeadLayers(needed);
}

void Graph::MarkDeadLayers(const std::set<const Storage*>& needed) {
  for (size_t i = 0; i < summaries_.size(); ++i) {
    summaries_[i].live =
        summarized_[i].empty() ||  // the loss
        std::any_of(summarized_[i].begin(), summarized_[i].end(),
                    [&needed](const Storage* storage) { return needed.count(storage) > 0; });
  }
}

// Decides which layers have a backward pass, which inputs get a gradient, which of several readers
// writes the gradient first, and which ReLUs the next layer undoes.
void Graph::AssignGradients() {
  for (Layer* layer : live_) {
    bool differentiable = layer->has_parameters();
    for (Input& in : layer->inputs()) {
      in.wants_grad = in.tensor->storage->differentiable;
      differentiable |= in.wants_grad;
    }
    if (!differentiable) continue;
    backward_.push_back(layer);
    for (Tensor* out : layer->outputs()) out->storage->differentiable = true;
  }
  std::reverse(backward_.begin(), backward_.end());
  std::set<const Storage*> written;
  for (Layer* layer : backward_) {
    for (Input& in : layer->inputs()) {
      if (!in.wants_grad) continue;
      in.write = written.insert(in.tensor->storage).second ? op::Write::kOverwrite
                                                           : op::Write::kAccumulate;
      Tensor& tensor = *in.tensor;
      tensor.grad_behind_relu =
          tensor.ends_in_relu && tensor.storage->readers == 1 && layer->can_undo_relu();
    }
  }
}

}  // namespace cistern::model
