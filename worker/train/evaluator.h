// Scores evaluation data with a model: exact AUC, log loss, and what else solver.eval_metrics asks
// for (worker/model/metric/metric_set.h, which also says what they take of memory).
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

// The data of one evaluation, cut into passes. Data that fits one pass is read once and kept, so
// that evaluating again costs no reading; of more data, as much as the model's cache_eval_data
// says.
//
// Threads: one at a time.
class Evaluator {
 public:
  // labels: what they may be; those that are none have no score. files: file lists or data files;
  // empty: the model's eval_source. max_batches: 0 = all of it.
  // device: the model's; stage and group (the workers of the model; null: alone): of the thread
  // that calls Run. What is borrowed outlives this.
  Evaluator(const ModelConfig& config, ParameterClient& client, Model& model, RowStage& stage,
            DeviceContext& device, ProcessGroup* group, LabelRule labels,
            std::vector<std::string> files, uint64_t max_batches);

  // Called with each batch and its predictions [size, label_dim], in the order of the data; a
  // worker that is not alone has its part of them.
  using Visit = std::function<absl::Status(const Batch&, const std::vector<float>& predictions)>;

  // Predicts everything. Rows come from `live` (the pass that is being trained) where it has the
  // key and from the servers' committed state elsewhere; a key that neither holds reads a row of
  // zeros and is counted in unseen_keys.
  // All workers of a group find the same, of all their samples.
  // kDataLoss: a label or a prediction is not a finite number.
  absl::StatusOr<EvalSummary> Run(const ReadyPass* live, const Visit& visit = nullptr);

 private:
  // Fills `tables` for `pass`; adds to *unseen.
  absl::Status FillTables(const Pass& pass, const ReadyPass* live,
                          std::vector<std::unique_ptr<PassTable>>& tables, uint64_t* unseen);

  // Keeps `pass` where it follows those that are kept and cache_eval_data wants more batches, or
  // where it is all of the data.
  void Keep(std::unique_ptr<Pass> pass, bool is_last);

  const ModelConfig& config_;
  ParameterClient& client_;
  Model& model_;
  RowStage& stage_;
  DeviceContext& device_;
  ProcessGroup* const group_;
  const PassMemory memory_;
  const LabelRule labels_;
  const std::vector<std::string> files_;
  const uint64_t max_batches_;
  std::vector<std::unique_ptr<Pass>> kept_;  // the first passes of the data
  bool all_kept_ = false;
};

}  // namespace cistern
