// Keeps the score details of evaluations until the run knows which state is its final one.
#pragma once

#include <memory>
#include <optional>

#include "worker/report/score_detail.h"
#include "worker/train/jobs.h"

namespace cistern {

// Threads: one at a time.
class EvaluationKeeper {
 public:
  // progress: an event with scores (others are ignored).
  void Observe(const Progress& progress) {
    if (progress.scores == nullptr) return;
    auto scores = std::make_shared<ScoreDetail>(*progress.scores);
    scores->iter = progress.iter;
    last_ = Kept{progress.auc, progress.logloss, std::move(scores)};
    if (!best_ || last_->auc.value_or(-1) > best_->auc.value_or(-1)) best_ = last_;
  }
  // The details of the evaluation that `final` repeats: the last one or the best one. Null if it is
  // neither, which happens if an earlier process evaluated the state.
  std::shared_ptr<const ScoreDetail> Of(const Progress& final) const {
    for (const std::optional<Kept>* kept : {&last_, &best_}) {
      if (*kept && (*kept)->auc == final.auc && (*kept)->logloss == final.logloss) {
        return (*kept)->scores;
      }
    }
    return nullptr;
  }

 private:
  struct Kept {
    std::optional<double> auc, logloss;
    std::shared_ptr<const ScoreDetail> scores;
  };
  std::optional<Kept> last_, best_;
};

}  // namespace cistern
