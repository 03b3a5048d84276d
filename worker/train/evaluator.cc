#include "worker/train/evaluator.h"

#include <algorithm>
#include <optional>

#include "common/base/check.h"
#include "common/base/cross_entropy.h"
#include "common/base/steady_time.h"
#include "worker/data/format/label_check.h"
#include "worker/model/config/grammar.h"
#include "worker/model/metric/metric_set.h"
#include "worker/report/score_detail.h"
#include "worker/train/score_sort.h"
#include "worker/train/scored_batch.h"

namespace cistern {
namespace {

model::MetricOptions MetricOptionsOf(const model::ModelConfig& config, data::LabelRule labels) {
  model::MetricOptions options;
  if (labels == data::LabelRule::kProbabilityOrNone) options.masked_below = data::kNoLabelBelow;
  options.label_dim = config.data.label_dim;
  options.label_names = config.data.label_names;
  for (const std::string& name : config.solver.eval_metrics) {
    if (const std::optional<model::Metric> metric = model::FindMetric(name))
      options.metrics.push_back(*metric);
  }
  for (const model::LayerConfig& layer : config.layers) {
    if (layer.is_loss()) options.label_weights = layer.own<model::LossConfig>().target_weight;
  }
  return options;
}

using Groups = std::vector<std::optional<Key>>;

// The group key of each sample; nullopt for an empty slot.
absl::StatusOr<Groups> GroupsOf(const data::Pass& pass, const data::HostBatch& batch,
                                const model::GroupSlot& group, const model::ModelConfig& config) {
  const data::HostSparseBatch& sparse = batch.sparse[group.input];
  const uint32_t place =
      data::PlacesOfSlot(config.data.sparse[group.input].sequences, group.slot).first;
  Groups groups(batch.size);
  for (size_t i = 0; i < batch.size; ++i) {
    const uint32_t* offset = &sparse.offsets[i * sparse.slot_num + place];
    if (offset[1] - offset[0] > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(config.path, ": cistern.gauc_slot: a sample has ", offset[1] - offset[0],
                       " keys in slot ", group.slot, " of '", config.data.sparse[group.input].top,
                       "'; a group slot holds at most one"));
    }
    if (offset[1] == offset[0]) continue;
    groups[i] = sparse.keys.empty() ? pass.keys[group.input].keys()[sparse.rows[*offset]]
                                    : sparse.keys[*offset];
  }
  return groups;
}

// Makes each negative sample count for those that were left out, of which `rate` are there.
void WeighNegatives(double rate, ScoredBatch* scored) {
  scored->weights.resize(scored->samples, 1.0f);
  for (size_t i = 0; i < scored->samples; ++i) {
    if (scored->labels[i] <= 0.5f) scored->weights[i] /= static_cast<float>(rate);
  }
}

// The log-odds of each label: its logit or, for two classes, that of the second class (loss.h).
std::vector<double> MarginsOf(const std::vector<float>& logits, size_t predictions) {
  if (logits.size() == predictions) return {logits.begin(), logits.end()};
  CISTERN_CHECK(logits.size() == 2 * predictions);
  std::vector<double> margins(predictions);
  for (size_t i = 0; i < predictions; ++i) margins[i] = MarginOf(&logits[2 * i]);
  return margins;
}

void Summarize(const model::MetricValues& values, EvalSummary* summary) {
  for (const model::MetricValue& value : values) {
    if (value.name == "auc") {
      summary->auc = value.value;
      summary->auc_note = value.note;
    } else if (value.name == "logloss") {
      summary->logloss = value.value.value_or(0);
    } else {
      summary->metrics.push_back(value);
    }
  }
}

void AddDetails(const ScoredBatch& scored, data::LabelRule labels,
                report::ScoreCollector* details) {
  for (size_t i = 0; i < scored.labels.size(); ++i) {
    if (labels == data::LabelRule::kProbabilityOrNone && scored.labels[i] < data::kNoLabelBelow)
      continue;
    const size_t sample = i / (scored.labels.size() / scored.samples);
    details->Add(scored.labels[i], scored.predictions[i], scored.margins[i],
                 scored.weights.empty() ? 1.0f : scored.weights[sample]);
  }
}

std::shared_ptr<const report::ScoreDetail> DetailOf(const report::ScoreCollector& details,
                                                    const EvalSummary& summary) {
  auto detail = std::make_shared<report::ScoreDetail>(details.Detail());
  detail->keys = summary.keys;
  detail->unseen_keys = summary.unseen_keys;
  detail->auc = summary.auc;
  detail->logloss = summary.logloss;
  return detail;
}

}  // namespace

Evaluator::Evaluator(const model::ModelConfig& config, ParameterClient& client, model::Model& model,
                     model::RowStage& stage, DeviceContext& device, group::ProcessGroup* group,
                     data::LabelRule labels, std::vector<std::string> files, uint64_t max_batches)
    : config_(config),
      client_(client),
      model_(model),
      stage_(stage),
      device_(device),
      group_(group),
      memory_(PassMemoryOn(device, config)),
      labels_(labels),
      files_(std::move(files)),
      max_batches_(max_batches) {}

absl::Status Evaluator::FillTables(const data::Pass& pass, const ReadyPass* live,
                                   std::vector<std::unique_ptr<model::PassTable>>& tables,
                                   EvalSummary* summary, std::vector<std::vector<bool>>* unseen) {
  unseen->assign(config_.embeddings.size(), {});
  CISTERN_RETURN_IF_ERROR(device_.stream().Wait());  // pending steps may update the rows of `live`
  for (size_t e = 0; e < config_.embeddings.size(); ++e) {
    const size_t input = config_.embeddings[e].input;
    const TableId id = static_cast<TableId>(e);
    const absl::Span<const Key> keys = pass.keys[input].keys();
    tables.push_back(std::make_unique<model::PassTable>(client_.layout(id), device_));
    model::PassTable& table = *tables.back();
    CISTERN_RETURN_IF_ERROR(table.Resize(keys.size()));
    table.set_keys(keys);
    summary->keys += keys.size();
    (*unseen)[e].resize(keys.size());
    const data::PassKeys none;
    const data::SharedRows shared =
        data::FindShared(pass.keys[input], live == nullptr ? none : live->pass->keys[input]);
    std::vector<Key> missing;
    for (const Row row : shared.missing) missing.push_back(keys[row]);
    if (live != nullptr) {
      CISTERN_RETURN_IF_ERROR(stage_.Carry(*live->tables[e], shared.there, shared.here, table));
    }
    const auto pull = [&](size_t first, size_t count, absl::Span<const Row> at, float* values,
                          uint8_t* has_embedx) -> absl::Status {
      CISTERN_RETURN_IF_ERROR(client_.Pull(id, absl::MakeSpan(missing).subspan(first, count),
                                           /*absent_is_zero=*/true, values, has_embedx, at));
      for (size_t i = 0; i < count; ++i) {
        uint8_t& has = has_embedx[at.empty() ? i : at[i]];
        if (has != kAbsent) continue;
        has = 0;
        ++summary->unseen_keys;
        (*unseen)[e][shared.missing[first + i]] = true;
      }
      return absl::OkStatus();
    };
    CISTERN_RETURN_IF_ERROR(stage_.Write(shared.missing, pull, table));
  }
  return absl::OkStatus();
}

void Evaluator::Keep(std::unique_ptr<data::Pass> pass, bool is_last) {
  uint64_t batches = 0;
  for (const std::unique_ptr<data::Pass>& kept : kept_) batches += kept->batches.size();
  const bool follows = kept_.empty() ? pass->begin == data::PassCursor()
                                     : kept_.back()->end.next == pass->begin.next;
  const bool is_all = is_last && kept_.empty();
  if (!follows || !(is_all || batches < config_.data.cache_eval_batches)) return;
  kept_.push_back(std::move(pass));
  all_kept_ = is_last;
}

class Evaluator::Scores {
 public:
  Scores(const model::ModelConfig& config, data::LabelRule labels, DeviceContext& device)
      : labels_(labels), metrics_(OptionsOf(config, labels, device)) {}

  absl::Status Add(const ScoredBatch& scored) {
    CISTERN_RETURN_IF_ERROR(metrics_.Add(scored.labels, scored.predictions, scored.groups,
                                         scored.margins, scored.weights));
    summary.samples += scored.samples;
    for (float label : scored.labels) summary.positives += label > 0.5f ? 1 : 0;
    AddDetails(scored, labels_, &details_);
    return absl::OkStatus();
  }
  EvalSummary Finish() {
    Summarize(metrics_.Values(), &summary);
    summary.auc_error = metrics_.AucError();
    summary.scores = DetailOf(details_, summary);
    summary.seconds = SecondsSince(start_);
    return std::move(summary);
  }

  EvalSummary summary;

 private:
  static model::MetricOptions OptionsOf(const model::ModelConfig& config, data::LabelRule labels,
                                        DeviceContext& device) {
    model::MetricOptions options = MetricOptionsOf(config, labels);
    if (device.kind() == DeviceKind::kCuda) {
      options.sort = [&device](std::vector<float>* scores) { SortScoresOn(device, scores); };
    }
    return options;
  }

  const SteadyTime start_ = std::chrono::steady_clock::now();
  const data::LabelRule labels_;
  model::MetricSet metrics_;
  report::ScoreCollector details_;
};

absl::Status Evaluator::Score(const data::Pass& pass, const std::vector<bool>* is_drawn,
                              absl::Span<model::PassTable* const> tables, bool has_groups,
                              const Visit& visit, const Inspect& inspect,
                              const std::vector<std::vector<bool>>* unseen, Scores* scores) {
  // Of eval_source, but not of other files or of the passes of a stream.
  const bool is_eval_source = is_drawn == nullptr && files_.empty() && open_ == nullptr;
  const double negative_rate = is_eval_source ? config_.cistern.eval_negative_rate : 1;
  std::vector<float> logits;
  for (size_t i = 0; i < pass.batches.size(); ++i) {
    if (is_drawn != nullptr && !(*is_drawn)[i]) continue;
    const data::HostBatch& batch = pass.batches[i];
    ScoredBatch scored;
    CISTERN_RETURN_IF_ERROR(model_.Predict(batch, tables, &scored.predictions, &logits));
    if (visit) CISTERN_RETURN_IF_ERROR(visit(batch, scored.predictions));
    if (inspect) {
      CISTERN_RETURN_IF_ERROR(inspect({pass, batch, tables, *unseen, scored.predictions}));
    }
    scored.samples = batch.size;
    scored.labels = batch.label;
    scored.weights = batch.weight;
    if (negative_rate < 1) WeighNegatives(negative_rate, &scored);
    scored.margins = MarginsOf(logits, scored.predictions.size());
    if (config_.cistern.gauc_slot && has_groups) {
      CISTERN_ASSIGN_OR_RETURN(scored.groups,
                               GroupsOf(pass, batch, *config_.cistern.gauc_slot, config_));
    }
    if (group_ != nullptr) CISTERN_RETURN_IF_ERROR(scored.GatherFrom(*group_));
    CISTERN_RETURN_IF_ERROR(scores->Add(scored));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvalSummary> Evaluator::ScorePass(const ReadyPass& ready,
                                                 const std::vector<bool>& is_drawn) {
  std::vector<model::PassTable*> tables;
  for (const auto& table : ready.tables) tables.push_back(table.get());
  Scores scores(config_, labels_, device_);
  CISTERN_RETURN_IF_ERROR(Score(*ready.pass, &is_drawn, tables, /*has_groups=*/group_ == nullptr,
                                nullptr, nullptr, nullptr, &scores));
  return scores.Finish();
}

absl::StatusOr<EvalSummary> Evaluator::Run(const ReadyPass* live, const Visit& visit,
                                           const Inspect& inspect) {
  Scores scores(config_, labels_, device_);
  EvalSummary& summary = scores.summary;
  const auto score = [&](const data::Pass& pass) -> absl::Status {
    std::vector<std::unique_ptr<model::PassTable>> tables;
    std::vector<std::vector<bool>> unseen;
    CISTERN_RETURN_IF_ERROR(FillTables(pass, live, tables, &summary, &unseen));
    std::vector<model::PassTable*> borrowed;
    for (const auto& table : tables) borrowed.push_back(table.get());
    CISTERN_RETURN_IF_ERROR(model_.BringUp(borrowed));
    return Score(pass, /*is_drawn=*/nullptr, borrowed, /*has_groups=*/true, visit, inspect, &unseen,
                 &scores);
  };
  for (const std::unique_ptr<data::Pass>& pass : kept_) CISTERN_RETURN_IF_ERROR(score(*pass));
  if (!all_kept_) {
    CISTERN_ASSIGN_OR_RETURN(
        std::unique_ptr<data::PassSource> source,
        OpenEvaluationData(config_, memory_, device_, group_, labels_, files_, max_batches_,
                           kept_.empty() ? data::PassCursor() : kept_.back()->end, open_));
    const auto next_pass = [&] { return NextPass(*source, config_, group_, PassUse::kEvaluate); };
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::Pass> pass, next_pass());
    while (pass != nullptr) {
      CISTERN_RETURN_IF_ERROR(score(*pass));
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::Pass> next, next_pass());
      Keep(std::move(pass), /*is_last=*/next == nullptr);
      pass = std::move(next);
    }
  }
  if (group_ != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(summary.unseen_keys, group::SumOver(*group_, summary.unseen_keys));
    CISTERN_ASSIGN_OR_RETURN(summary.keys, group::SumOver(*group_, summary.keys));
  }
  return scores.Finish();
}

}  // namespace cistern
