// The training loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/client/parameter_client.h"
#include "worker/config/model_config.h"
#include "worker/model/model.h"
#include "worker/train/evaluator.h"
#include "worker/train/jobs.h"
#include "worker/train/metrics_log.h"
#include "worker/train/pass_pipeline.h"
#include "worker/train/plateau.h"

namespace cistern {

// Pass after pass: take the rows, train each batch, evaluate where the model asks for it, commit.
//
// Threads: Run once, from one thread.
class Trainer {
 public:
  // Creates the tables on the servers, becomes their only writer, and starts from what they hold:
  // from the first values of a fresh fleet, or from the committed state of an earlier run.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const ModelConfig& config,
                                                         ParameterClient& client,
                                                         const JobOptions& options);
  absl::StatusOr<TrainSummary> Run();

 private:
  Trainer(const ModelConfig& config, ParameterClient& client, const JobOptions& options);

  absl::Status RestoreDense();
  absl::Status TrainPass(ReadyPass& ready);
  // After a batch: the lines and evaluations that fall on this iteration.
  absl::Status AfterStep(const ReadyPass& ready);
  absl::Status EvaluateNow(const ReadyPass* live, const char* event);
  // Pushes the rows of `ready` and the dense tables, and commits them as one pass.
  absl::Status Commit(const ReadyPass& ready);
  // At the end of an epoch: evaluation, learning rate, patience, best state.
  absl::Status EndEpoch();
  // Brings the best epoch's state back to servers and model.
  absl::Status RestoreBest();
  absl::Status Finish();
  bool Stopping() const { return !summary_.stopped_by.empty(); }
  void Stop(const std::string& why) {
    if (!Stopping()) summary_.stopped_by = why;
  }
  Progress Now(const char* event) const;
  std::string ModelDir() const { return options_.out_dir + "/model"; }

  const ModelConfig& config_;
  ParameterClient& client_;
  const JobOptions options_;
  LocalFileSystem local_files_;
  FileSystem& files_;
  Stream stream_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Evaluator> evaluator_;  // null: the model never evaluates
  std::unique_ptr<MetricsLog> log_;
  Plateau plateau_;
  TrainSummary summary_;
  double loss_sum_ = 0;  // since the last "train" line
  uint64_t loss_count_ = 0;
  double pass_loss_sum_ = 0;  // since the last "pass" line
  uint64_t pass_loss_count_ = 0;
  double epoch_samples_ = 0;                  // mean of the epochs that ended; 0: none has
  std::optional<uint64_t> scored_iteration_;  // of the last evaluation
  std::string best_dir_;                      // model folder of the best epoch; empty: none yet
  bool best_is_last_ = false;                 // the servers hold the best epoch's state now
  std::optional<double> best_auc_, best_logloss_;
};

}  // namespace cistern
