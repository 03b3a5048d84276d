// Warnings about runs that go wrong without an error. Each one missed can cost a day.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker/train/jobs.h"

namespace cistern {

// Reads the events of a run in order. Warns once about each of:
//   - a training loss that does not fall;
//   - an evaluation AUC that cannot be told from that of chance, or is below it;
//   - an evaluation log loss above that of a constant prediction;
//   - predictions that are all the same;
//   - labels other than 0 and 1;
//   - evaluation data whose keys training has not seen;
//   - an AUC above 0.999;
//   - predictions that are 20 % too high or too low in sum.
// Rules that need a trained model wait for an epoch, 1000 iterations or the end of the run.
//
// Threads: one at a time.
class RunWarnings {
 public:
  // The messages that follow from this event, each once during this object's life.
  std::vector<std::string> Observe(const Progress& progress);
  // The training loss of the best constant prediction, if known: a loss below it has fallen.
  void KnowLossOfConstant(double loss) { loss_of_constant_ = loss; }
  // cistern.positive_weight: it moves the mean prediction.
  void KnowPositiveWeight(double weight) { positive_weight_ = weight; }
  // cistern.calibrate, if it is exact: the mean prediction to reach, whatever share the evaluation
  // data has.
  void KnowExactShare(double share) { exact_share_ = share; }

 private:
  void CheckLoss(const Progress& progress);
  void CheckScores(const Progress& progress, const report::ScoreDetail& scores, bool is_trained);
  // Whether the model ranks or predicts better than one that knows nothing of the input. Both need
  // a trained model.
  void CheckAuc(const Progress& progress, const report::ScoreDetail& scores);
  void CheckLogLoss(const Progress& progress, const report::ScoreDetail& scores);
  void CheckKeys(const report::ScoreDetail& scores);
  void CheckCalibration(const report::ScoreDetail& scores);
  void Warn(const char* rule, const std::string& message);
  bool Said(const std::string& rule) const { return said_.contains(rule); }
  // Whether the loss is as good as that of a constant prediction, or unknown.
  bool IsNoBetterThanConstant(double loss) const;

  std::vector<double> losses_;  // of the lines "train", or of "pass" if there are none
  std::vector<double> pass_losses_;
  std::optional<double> loss_of_constant_;
  double positive_weight_ = 1;
  std::optional<double> exact_share_;
  std::optional<double> learning_rate_;  // the first one
  size_t evaluations_at_chance_ = 0;     // in a row
  bool continues_ = false;               // the run began in an earlier process
  std::set<std::string> said_;
  std::vector<std::string> fresh_;
};

// What to say of labels that mean the opposite of those before: a trained model, before it is
// trained further, ranks the evaluation data of new days worse than chance. Empty: it does not.
std::string InvertedLabels(double auc, const report::ScoreDetail& scores);

}  // namespace cistern
