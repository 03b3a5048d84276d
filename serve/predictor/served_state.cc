#include "serve/predictor/served_state.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "common/base/machine_limits.h"
#include "common/base/pages.h"
#include "common/io/mapped_file.h"
#include "common/serving/merge_rows.h"
#include "worker/data/recipe/text_samples.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::serve {

struct ServedTable::Layer {
  std::unique_ptr<MappedFile> file;
  HugePageVector<char> bytes;  // without a file
  RowsView view;
};

namespace {

// The configuration for prediction: no statistics, no optimizer state, and memory for small
// batches.
void ReduceToPrediction(model::ModelConfig* config) {
  constexpr uint64_t kBatch = 512;  // samples that the graph computes at a time
  for (model::EmbeddingConfig& embedding : config->embeddings) {
    v1::TableSpec spec;
    spec.set_name(embedding.spec.name());
    spec.set_dim(embedding.vec_size);
    embedding.spec = spec;
    embedding.optimizer = {};
  }
  config->draws_weights = false;  // they will be loaded
  config->optimizer = {};
  config->solver.batchsize = 1;
  config->solver.batchsize_eval = kBatch;
}

PredictorShape ShapeOfModel(const model::ModelConfig& config) {
  PredictorShape shape;
  shape.label_dim = config.data.label_dim;
  shape.dense_dim = config.data.dense_dim;
  for (const model::SparseInputConfig& input : config.data.sparse) {
    shape.inputs.push_back({input.top, input.slot_num, input.key_weights});
  }
  return shape;
}

absl::Status CheckBytes(const ServingFile& file, absl::string_view bytes) {
  if (bytes.size() != file.bytes) {
    return absl::DataLossError(
        absl::StrCat(file.path, " has ", bytes.size(), " bytes, not ", file.bytes));
  }
  if (HashBytes(bytes.data(), bytes.size()) == file.xxh3) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.path, ": checksum mismatch"));
}

absl::StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& root, const ServingFile& file) {
  absl::StatusOr<std::unique_ptr<MappedFile>> mapped =
      MappedFile::Open(absl::StrCat(root, "/", file.path), MappedFile::Access::kRandom);
  if (absl::IsNotFound(mapped.status()))
    return WithCode(mapped.status(), absl::StatusCode::kDataLoss);
  return mapped;
}

// Maps the pages of a file, with pauses for the requests that are served meanwhile. Leaves out a
// file that would displace other files from memory.
void PrefetchGently(const MappedFile& file, const std::function<bool()>& go_on) {
  constexpr absl::Duration kPause = absl::Microseconds(200);
  if (file.bytes().size() > MemoryBytes() / 2) return;
  file.Prefetch([&] {
    absl::SleepFor(kPause);
    return go_on();
  });
}

}  // namespace

ServedTable::~ServedTable() = default;

absl::StatusOr<std::shared_ptr<const ServedTable>> ServedTable::Open(const std::string& root,
                                                                     const ServingTable& table,
                                                                     RowPrecision precision,
                                                                     const ServedTable* previous,
                                                                     bool verify) {
  std::shared_ptr<ServedTable> opened(new ServedTable());
  opened->table_ = table;
  opened->precision_ = precision;
  const ServingFile& base = table.layers.front();
  const bool same_base = previous != nullptr && previous->table_.layers.front() == base &&
                         previous->table_.dim == table.dim && previous->precision_ == precision;
  if (same_base) {
    opened->base_ = previous->base_;
    opened->base_digest_ = previous->base_digest_;
  } else {
    auto layer = std::make_shared<Layer>();
    CISTERN_ASSIGN_OR_RETURN(layer->file, Map(root, base));
    const absl::string_view bytes = layer->file->bytes();
    if (bytes.size() != base.bytes) CISTERN_RETURN_IF_ERROR(CheckBytes(base, bytes));
    if (verify) CISTERN_RETURN_IF_ERROR(CheckBytes(base, bytes));
    absl::StatusOr<RowsView> view = RowsView::Parse(bytes);
    if (!view.ok()) return AddContext(view.status(), base.path);
    if (verify) CISTERN_RETURN_IF_ERROR(AddContext(view->Verify(), base.path));
    layer->view = *view;
    if (previous != nullptr) {  // requests are being served meanwhile
      PrefetchGently(*layer->file, [] { return true; });
    }
    opened->base_ = layer;
    // One layer has the digest of the table. With several, old versions do not tell that of the
    // base.
    const std::optional<uint64_t> told =
        table.layers.size() == 1 ? std::optional(table.digest) : table.base_digest;
    opened->base_digest_ = told && !verify ? *told : view->Digest();
  }
  const RowsShape& shape = opened->base_->view.shape();
  if (shape.dim != table.dim || shape.precision != precision) {
    return absl::DataLossError(absl::StrCat(base.path, ": rows of ", shape.dim, " weights (",
                                            NameOf(shape.precision), "), not ", table.dim, " (",
                                            NameOf(precision), ")"));
  }
  CISTERN_RETURN_IF_ERROR(opened->AddChanges(root, same_base ? previous : nullptr));
  return opened;
}

// What the rows above the base add to its digest is found by looking each of them up below.
absl::Status ServedTable::AddChanges(const std::string& root, const ServedTable* previous) {
  constexpr size_t kMostRecent = 3;
  size_t known = 1;  // layers that are already open
  uint64_t digest = base_digest_;
  if (previous != nullptr) {
    const std::vector<ServingFile>& old = previous->table_.layers;
    if (old.size() <= table_.layers.size() &&
        std::equal(old.begin(), old.end(), table_.layers.begin())) {
      known = old.size();
      merged_ = previous->merged_;
      recent_ = previous->recent_;
      digest = previous->table_.digest;
    }
  }
  for (; known < table_.layers.size(); ++known) {
    CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<const Layer> layer,
                             OpenChanges(root, table_.layers[known]));
    AddToDigest(*layer, Layers(), &digest);
    recent_.push_back(std::move(layer));
    if (recent_.size() > kMostRecent) CISTERN_RETURN_IF_ERROR(Merge());
  }
  if (digest == table_.digest) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("table '", table_.name, "': its layers do not add up to its digest"));
}

absl::StatusOr<std::shared_ptr<const ServedTable::Layer>> ServedTable::OpenChanges(
    const std::string& root, const ServingFile& file) const {
  auto layer = std::make_shared<Layer>();
  CISTERN_ASSIGN_OR_RETURN(layer->file, Map(root, file));
  layer->file->Prefetch();
  CISTERN_RETURN_IF_ERROR(CheckBytes(file, layer->file->bytes()));
  absl::StatusOr<RowsView> view = RowsView::Parse(layer->file->bytes());
  if (!view.ok()) return AddContext(view.status(), file.path);
  CISTERN_RETURN_IF_ERROR(AddContext(view->VerifyGroups(), file.path));
  if (view->shape().dim != table_.dim || view->shape().precision != precision_) {
    return absl::DataLossError(
        absl::StrCat(file.path, ": its rows differ from the table in dim or precision"));
  }
  layer->view = *view;
  return layer;
}

std::vector<const ServedTable::Layer*> ServedTable::Layers() const {
  std::vector<const Layer*> layers = {base_.get()};
  if (merged_ != nullptr) layers.push_back(merged_.get());
  for (const auto& layer : recent_) layers.push_back(layer.get());
  return layers;
}

absl::Status ServedTable::Merge() {
  auto merged = std::make_shared<Layer>();
  std::vector<const RowsView*> views;
  size_t most = 0;
  for (const Layer* const layer : Layers()) {
    if (layer == base_.get()) continue;
    views.push_back(&layer->view);
    most += layer->file != nullptr ? layer->file->bytes().size() : layer->bytes.size();
  }
  merged->bytes.reserve(most);  // more than enough: growing would copy it several times
  const ByteSink append = [&](absl::string_view bytes) {
    merged->bytes.insert(merged->bytes.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  };
  RowsEncoder encoder(views.front()->shape(), append, RowsEncoder::Hashes::kNotHashed);
  CISTERN_RETURN_IF_ERROR(MergeRows(views, /*keep_removed=*/true, &encoder));
  CISTERN_ASSIGN_OR_RETURN(merged->view,
                           RowsView::Parse({merged->bytes.data(), merged->bytes.size()}));
  merged_ = std::move(merged);
  recent_.clear();
  return absl::OkStatus();
}

void ServedTable::AddToDigest(const Layer& layer, absl::Span<const Layer* const> below,
                              uint64_t* digest) {
  constexpr size_t kTogether = 256;  // rows whose lookups overlap
  const RowsShape shape = layer.view.shape();
  ServedRowDigest row_digest(shape);
  std::vector<Key> keys;
  std::vector<const char*> old;
  std::vector<RowsView::State> states;
  RowsView::Cursor row(layer.view);
  while (!row.done()) {
    keys.clear();
    for (; !row.done() && keys.size() < kTogether; row.Next()) {
      keys.push_back(UnmixKey(row.mixed()));
      if (row.weights() != nullptr) *digest += row_digest.Of(keys.back(), row.weights());
    }
    old.assign(keys.size(), nullptr);
    states.assign(keys.size(), RowsView::kUnknown);
    for (size_t i = below.size(); i-- > 0;) below[i]->view.Find(keys, states.data(), old.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (old[i] != nullptr) *digest -= row_digest.Of(keys[i], old[i]);
    }
  }
}

size_t ServedTable::Lookup(absl::Span<const Key> keys, float* out, size_t stride) const {
  std::vector<RowsView::State> states(keys.size(), RowsView::kUnknown);
  for (size_t i = recent_.size(); i-- > 0;) {
    recent_[i]->view.Lookup(keys, states.data(), out, stride);
  }
  if (merged_ != nullptr) merged_->view.Lookup(keys, states.data(), out, stride);
  base_->view.Lookup(keys, states.data(), out, stride);
  size_t unseen = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (states[i] == RowsView::kFound) continue;
    std::fill_n(out + i * stride, table_.dim, 0.0f);
    ++unseen;
  }
  return unseen;
}

void ServedTable::Prefetch(const std::function<bool()>& go_on) const {
  PrefetchGently(*base_->file, go_on);
}

void ServedState::Prefetch(const std::function<bool()>& go_on) const {
  for (const auto& table : tables_) table->Prefetch(go_on);
}

absl::StatusOr<std::shared_ptr<const ServedState>> ServedState::Open(const std::string& root,
                                                                     const ServingHead& head,
                                                                     const ServedState* previous,
                                                                     bool verify) {
  LocalFileSystem files;
  auto state = std::make_shared<ServedState>();
  state->head_ = head;
  CISTERN_ASSIGN_OR_RETURN(state->version_, ReadVersion(files, root, head.folder, head.xxh3));
  CISTERN_RETURN_IF_ERROR(AddContext(state->ReadModel(root), root));
  CISTERN_RETURN_IF_ERROR(AddContext(state->ReadDense(root), root));
  CISTERN_RETURN_IF_ERROR(AddContext(state->ReadRecipe(root, previous), root));
  const ServingVersion& version = state->version_;
  if (version.tables.size() != state->config_.embeddings.size()) {
    return absl::DataLossError(absl::StrCat(root, "/", head.folder, ": ", version.tables.size(),
                                            " tables, but the model has ",
                                            state->config_.embeddings.size(), " embeddings"));
  }
  for (size_t t = 0; t < version.tables.size(); ++t) {
    const ServingTable& table = version.tables[t];
    if (table.dim != state->config_.embeddings[t].vec_size) {
      return absl::DataLossError(absl::StrCat(root, "/", head.folder, ": table '", table.name,
                                              "' has rows of ", table.dim, " weights, not ",
                                              state->config_.embeddings[t].vec_size));
    }
    const ServedTable* const old =
        previous != nullptr && t < previous->tables_.size() ? previous->tables_[t].get() : nullptr;
    auto opened = ServedTable::Open(root, table, version.precision, old, verify);
    if (!opened.ok()) return AddContext(opened.status(), root);
    state->tables_.push_back(*std::move(opened));
  }
  return state;
}

absl::Status ServedState::ReadModel(const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, Map(root, version_.model));
  CISTERN_RETURN_IF_ERROR(CheckBytes(version_.model, file->bytes()));
  CISTERN_ASSIGN_OR_RETURN(config_,
                           model::ParseModelConfig(std::string(file->bytes()), version_.model.path,
                                                   version_.overrides, model::LayerGrammars()));
  ReduceToPrediction(&config_);
  shape_ = ShapeOfModel(config_);
  return absl::OkStatus();
}

absl::Status ServedState::ReadRecipe(const std::string& root, const ServedState* previous) {
  if (!version_.recipe) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, Map(root, *version_.recipe));
  CISTERN_RETURN_IF_ERROR(CheckBytes(*version_.recipe, file->bytes()));
  const absl::StatusOr<data::Recipe> recipe = data::ParseRecipe(std::string(file->bytes()));
  if (!recipe.ok()) return AddContext(recipe.status(), version_.recipe->path);
  if (previous != nullptr && previous->encoder_ != nullptr &&
      data::ReadSameRows(previous->encoder_->recipe(), *recipe)) {
    encoder_ = previous->encoder_;  // its vocabulary can be large
    return absl::OkStatus();
  }
  if (recipe->vocabulary_xxh3.has_value() != version_.vocabulary.has_value()) {
    return absl::DataLossError("the recipe and the vocabulary do not match");
  }
  CISTERN_ASSIGN_OR_RETURN(
      encoder_,
      data::OwnedEncoder::Open(
          *recipe, version_.vocabulary ? absl::StrCat(root, "/", version_.vocabulary->path) : ""));
  return data::CheckRecipeShape(*recipe, model::ShapeOf(config_.data), config_.solver.wide_keys);
}

absl::Status ServedState::ReadDense(const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, Map(root, version_.dense));
  CISTERN_RETURN_IF_ERROR(CheckBytes(version_.dense, file->bytes()));
  absl::string_view bytes = file->bytes();
  for (const ServingDense& table : version_.dense_tables) {
    if (table.rows > bytes.size() / sizeof(float)) break;
    std::vector<float>& values = dense_.emplace_back(table.rows);
    std::memcpy(values.data(), bytes.data(), table.rows * sizeof(float));
    bytes.remove_prefix(table.rows * sizeof(float));
  }
  if (bytes.empty() && dense_.size() == version_.dense_tables.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(version_.dense.path, ": its size does not match the dense tables"));
}

}  // namespace cistern::serve
