// Scores a model on evaluation data: exact AUC, log loss, and the metrics in solver.eval_metrics
// (worker/model/metric/metric_set.h, which also documents their memory use).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model.h"
#include "worker/pass/data_source.h"
#include "worker/pass/pass_pipeline.h"
#include "worker/train/jobs.h"

namespace cistern {

// Evaluates one data set, cut into passes. Data that fits into one pass is read once and kept for
// later evaluations; of larger data, the batches that the model's cache_eval_data requests are
// kept.
//
// Threads: one at a time.
class Evaluator {
 public:
  // labels: the accepted label values; absent labels are not scored. files: file lists or data
  // files; empty: the model's eval_source. max_batches: 0 = all of it.
  // device: the model's. stage, group (the workers of the model; null: a single worker): used by
  // the thread that calls Run. Borrowed objects must outlive this one.
  Evaluator(const model::ModelConfig& config, ParameterClient& client, model::Model& model,
            model::RowStage& stage, DeviceContext& device, group::ProcessGroup* group,
            data::LabelRule labels, std::vector<std::string> files, uint64_t max_batches);

  // Reads the samples that `open` opens instead of files. Call it before Run.
  void ReadFrom(data::PassSource::OpenReader open) { open_ = std::move(open); }

  // Receives each batch and its predictions, [size, label_dim], in the order of the data; with
  // several workers, only this worker's part.
  using Visit =
      std::function<absl::Status(const data::HostBatch&, const std::vector<float>& predictions)>;

  // A batch with everything needed to predict it again, changed or not.
  struct Inspected {
    const data::Pass& pass;
    const data::HostBatch& batch;
    absl::Span<model::PassTable* const> tables;    // by embedding
    const std::vector<std::vector<bool>>& unseen;  // [embedding][row]: the key reads zeros
    const std::vector<float>& predictions;
  };
  using Inspect = std::function<absl::Status(const Inspected&)>;

  // Predicts and scores all samples. Rows come from `live` (the pass in training) if it has the
  // key, else from the servers' committed state. A key in neither reads a row of zeros and counts
  // towards unseen_keys. All workers of a group get the same result, over all their samples.
  // kDataLoss: a label or a prediction is not a finite number.
  absl::StatusOr<EvalSummary> Run(const ReadyPass* live, const Visit& visit = nullptr,
                                  const Inspect& inspect = nullptr);
  // Predicts and scores samples of a pass before or after it is trained, from its own rows, which
  // do not change: those of the batches that are drawn. No table may defer updates. GAUC is left
  // out if there are several workers: they hold rows in place of keys.
  absl::StatusOr<EvalSummary> ScorePass(const ReadyPass& ready, const std::vector<bool>& is_drawn);

 private:
  class Scores;  // of the samples so far
  // Adds the samples of a pass, or of its batches that are drawn (null: all). tables: by embedding.
  // unseen: as in Inspected; null: nobody asks.
  absl::Status Score(const data::Pass& pass, const std::vector<bool>* is_drawn,
                     absl::Span<model::PassTable* const> tables, bool has_groups,
                     const Visit& visit, const Inspect& inspect,
                     const std::vector<std::vector<bool>>* unseen, Scores* scores);
  // Fills `tables` for `pass`. Adds to the counts of keys, and marks the keys in neither place in
  // `unseen`, [embedding][row].
  absl::Status FillTables(const data::Pass& pass, const ReadyPass* live,
                          std::vector<std::unique_ptr<model::PassTable>>& tables,
                          EvalSummary* summary, std::vector<std::vector<bool>>* unseen);

  // Keeps `pass` if it directly follows the kept passes and cache_eval_data asks for more batches,
  // or if it holds all of the data.
  void Keep(std::unique_ptr<data::Pass> pass, bool is_last);

  const model::ModelConfig& config_;
  ParameterClient& client_;
  model::Model& model_;
  model::RowStage& stage_;
  DeviceContext& device_;
  group::ProcessGroup* const group_;
  const PassMemory memory_;
  const data::LabelRule labels_;
  const std::vector<std::string> files_;
  const uint64_t max_batches_;
  data::PassSource::OpenReader open_;              // null: files_
  std::vector<std::unique_ptr<data::Pass>> kept_;  // the first passes of the data
  bool all_kept_ = false;
};

}  // namespace cistern
