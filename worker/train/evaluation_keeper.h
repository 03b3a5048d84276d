// Keeps the score details of evaluations until the run knows which state is its final one.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "worker/report/score_detail.h"
#include "worker/train/jobs.h"

namespace cistern {

// Threads: one at a time.
class EvaluationKeeper {
 public:
  // progress: an event with scores (others are ignored).
  void Observe(const Progress& progress) {
    if (progress.scores == nullptr) return;
    auto scores = std::make_shared<report::ScoreDetail>(*progress.scores);
    scores->iter = progress.iter;
    if (last_) kept_.push_back(*std::move(last_));
    last_ = Kept{progress.auc, progress.logloss, std::move(scores)};
    if (kept_.size() <= kMost) return;
    kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
      return a.score() < b.score();
    }));
  }
  // The details of the evaluation that `final` repeats: the last one, or one of the best. (The one
  // that a run keeps need not have the highest AUC: a gain that is too small does not count.) Null
  // if there is none, which happens if an earlier process evaluated the state.
  std::shared_ptr<const report::ScoreDetail> Of(const Progress& final) const {
    const auto repeats = [&](const Kept& kept) {
      return kept.auc == final.auc && kept.logloss == final.logloss;
    };
    if (last_ && repeats(*last_)) return last_->scores;
    const auto found = std::find_if(kept_.begin(), kept_.end(), repeats);
    return found == kept_.end() ? nullptr : found->scores;
  }

 private:
  static constexpr size_t kMost = 32;
  struct Kept {
    std::optional<double> auc, logloss;
    std::shared_ptr<const report::ScoreDetail> scores;
    double score() const { return auc ? *auc : -logloss.value_or(0); }
  };
  std::optional<Kept> last_;
  std::vector<Kept> kept_;  // the best of those before
};

}  // namespace cistern
