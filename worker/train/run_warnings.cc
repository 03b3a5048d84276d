#include "worker/train/run_warnings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/cross_entropy.h"
#include "worker/report/score_detail.h"

namespace cistern {
namespace {

constexpr size_t kLinesForLoss = 10;      // during the run
constexpr size_t kLinesForLossAtEnd = 2;  // at its end
constexpr double kMinFall = 0.005;        // a smaller fall of the loss, relative, is none
constexpr size_t kEvaluationsAtChance = 3;
constexpr double kDeviationsOfChance = 3;
constexpr double kDeviationsOfInversion = 5;
constexpr double kAucOfSignal = 0.55;  // from here on few samples, not chance, are the reason
constexpr uint64_t kTrainedIterations = 1000;

double MeanOfLastThird(const std::vector<double>& losses) {
  const size_t count = std::max<size_t>(losses.size() / 3, 1);
  return std::accumulate(losses.end() - static_cast<ptrdiff_t>(count), losses.end(), 0.0) /
         static_cast<double>(count);
}

// The standard deviation of the AUC of predictions that know nothing (Mann and Whitney 1947), from
// the number of samples: weights do not make a sample say more.
double DeviationOfChance(const report::ScoreDetail& scores) {
  const double samples = static_cast<double>(scores.samples);
  const double positives = scores.share_of_positives() * samples, negatives = samples - positives;
  if (positives < 1 || negatives < 1) return 1;
  return std::sqrt((positives + negatives + 1) / (12 * positives * negatives));
}

bool IsChance(double auc, const report::ScoreDetail& scores) {
  return auc < kAucOfSignal &&
         std::abs(auc - 0.5) <= kDeviationsOfChance * DeviationOfChance(scores);
}

// Whether an evaluation shows that something was learned: the model ranks better than chance, and
// predicts better than the share of positives does.
bool ShowsLearning(const Progress& progress) {
  if (progress.scores == nullptr || !progress.auc || !progress.logloss) return false;
  const report::ScoreDetail& scores = *progress.scores;
  return *progress.auc > 0.5 && !IsChance(*progress.auc, scores) &&
         *progress.logloss < EntropyOf(scores.share_of_positives());
}

// The standard deviation of the sum of labels, if the predictions were right. The weights of a bin
// count as their mean.
double DeviationOf(const report::ScoreDetail& scores) {
  double variance = 0;
  for (const report::ScoreBin& bin : scores.bins) {
    const double mean = bin.predicted / bin.total();
    const double squares = bin.total() * bin.total() / static_cast<double>(bin.samples);
    variance += squares * mean * (1 - mean);
  }
  return std::sqrt(variance);
}

}  // namespace

std::vector<std::string> RunWarnings::Observe(const Progress& progress) {
  fresh_.clear();
  if (progress.event == report::RunEvent::kResume) continues_ = true;
  if (!learning_rate_) learning_rate_ = progress.lr;
  if (progress.event == report::RunEvent::kTrain && progress.loss)
    losses_.push_back(*progress.loss);
  if (progress.event == report::RunEvent::kPass && progress.loss)
    pass_losses_.push_back(*progress.loss);
  CheckLoss(progress);
  if (progress.auc && *progress.auc > 0.999) {
    Warn("leak", absl::StrFormat(
                     "the AUC is %.6f: a column probably contains the label, or evaluation samples "
                     "are also in the training data; check what each column knew before the click",
                     *progress.auc));
  }
  const bool is_trained = progress.event == report::RunEvent::kFinal ||
                          progress.epoch.value_or(0) >= 1 || progress.iter >= kTrainedIterations;
  if (progress.scores != nullptr) CheckScores(progress, *progress.scores, is_trained);
  return fresh_;
}

void RunWarnings::CheckLoss(const Progress& progress) {
  const std::vector<double>& losses = losses_.size() >= 3 ? losses_ : pass_losses_;
  const bool is_end = progress.event == report::RunEvent::kFinal;
  if (continues_ || losses.size() < (is_end ? kLinesForLossAtEnd : kLinesForLoss)) return;
  const double last = MeanOfLastThird(losses);
  if (last < (1 - kMinFall) * losses.front() || !IsNoBetterThanConstant(last)) return;
  if (ShowsLearning(progress)) return;
  Warn("loss",
       absl::StrFormat("the training loss does not fall: %.6g at first, %.6g now; check the "
                       "label column and the learning rate (%.3g), and that the samples "
                       "are shuffled",
                       losses.front(), last, learning_rate_.value_or(0)));
}

bool RunWarnings::IsNoBetterThanConstant(double loss) const {
  return !loss_of_constant_ || loss > 0.98 * *loss_of_constant_;
}

void RunWarnings::CheckScores(const Progress& progress, const report::ScoreDetail& scores,
                              bool is_trained) {
  if (scores.samples == 0) return;
  if (scores.other_labels > 0) {
    Warn("labels", absl::StrCat(scores.other_labels, " of ", scores.samples,
                                " labels of the evaluation data are neither 0 nor 1; AUC counts "
                                "labels above 0.5 as positive, and the loss takes a label as a "
                                "probability"));
  }
  if (!is_trained) return;
  if (scores.samples > 1 && scores.highest - scores.lowest <= 1e-4 * scores.highest) {
    Warn("constant",
         absl::StrFormat("all predictions are %.6g to %.6g: the model ignores its input; check "
                         "the learning rate, the initial weights, and that the data has slots "
                         "and columns that vary",
                         scores.lowest, scores.highest));
  }
  CheckKeys(scores);
  CheckAuc(progress, scores);
  if (progress.event != report::RunEvent::kFinal) return;
  CheckCalibration(scores);
  CheckLogLoss(progress, scores);
}

void RunWarnings::CheckKeys(const report::ScoreDetail& scores) {
  const double unseen =
      scores.keys == 0 ? 0
                       : static_cast<double>(scores.unseen_keys) / static_cast<double>(scores.keys);
  if (scores.keys < 20 || unseen <= 0.5) return;
  Warn("unseen",
       absl::StrFormat("%.0f %% of the keys in the evaluation data (%d of %d) were not trained: "
                       "were both converted with the same hashing and vocabulary? a report with "
                       "the importance of slots shows where they are",
                       100 * unseen, scores.unseen_keys, scores.keys));
}

void RunWarnings::CheckAuc(const Progress& progress, const report::ScoreDetail& scores) {
  if (!progress.auc || Said("constant")) return;
  const double deviation = DeviationOfChance(scores);
  const bool at_chance = IsChance(*progress.auc, scores);
  evaluations_at_chance_ = at_chance ? evaluations_at_chance_ + 1 : 0;
  const bool is_end = progress.event == report::RunEvent::kFinal;
  if (at_chance && (is_end || evaluations_at_chance_ >= kEvaluationsAtChance)) {
    Warn("chance",
         absl::StrFormat("the AUC is %.6f, as that of chance (0.5 +- %.3f with %d samples, %.0f of "
                         "them positive): the columns say nothing about the label, or the labels "
                         "of one data set are wrong; check the label column and the learning rate "
                         "(%.3g)",
                         *progress.auc, kDeviationsOfChance * deviation, scores.samples,
                         scores.share_of_positives() * static_cast<double>(scores.samples),
                         learning_rate_.value_or(0)));
  }
  if (is_end && *progress.auc < 0.5 - kDeviationsOfChance * deviation) {
    Warn("inverted", absl::StrFormat("the AUC is %.6f, worse than chance: does 1 mean the same in "
                                     "the labels of the training and the evaluation data?",
                                     *progress.auc));
  }
}

void RunWarnings::CheckLogLoss(const Progress& progress, const report::ScoreDetail& scores) {
  for (const char* cause : {"constant", "chance", "inverted", "calibration", "loss"}) {
    if (Said(cause)) return;
  }
  const auto samples = static_cast<double>(scores.samples);
  const double constant = EntropyOf(scores.share_of_positives());
  const double noise = 1 / std::sqrt(samples);  // of a mean over few samples
  if (!progress.logloss || constant == 0 || *progress.logloss <= constant + noise) return;
  Warn("worse than constant",
       absl::StrFormat("the log loss %.6g of the evaluation data is above %.6g, that of a constant "
                       "prediction: the learning rate (%.3g) is too high, the model learned "
                       "the training data by heart, or the two data sets differ",
                       *progress.logloss, constant, learning_rate_.value_or(0)));
}

void RunWarnings::CheckCalibration(const report::ScoreDetail& scores) {
  const std::optional<double> ratio = scores.calibration_ratio();
  if (!ratio) return;
  const bool is_sure =
      std::abs(scores.predicted - scores.positives) >
      4 * std::max(DeviationOf(scores), scores.total() / static_cast<double>(scores.samples));
  const double mean = scores.predicted / scores.total();
  if (std::abs(*ratio - 1) <= 0.2 || !is_sure) return;
  if (exact_share_ && std::abs(mean / *exact_share_ - 1) <= 0.2) return;
  const std::string cause =
      positive_weight_ != 1
          ? absl::StrFormat(
                "cistern.positive_weight multiplies the odds by %.6g; "
                "cistern.calibrate moves the last bias back",
                positive_weight_)
          : "if the training data holds a part of the negative samples, set "
            "cistern.negative_rate; otherwise train longer or compare the two data sets";
  Warn("calibration",
       absl::StrFormat("the mean prediction is %.5g, but %.5g of the labels are positive (ratio "
                       "%.2f): %s",
                       mean, scores.share_of_positives(), *ratio, cause));
}

std::string InvertedLabels(double auc, const report::ScoreDetail& scores) {
  if (auc >= 0.5 - kDeviationsOfInversion * DeviationOfChance(scores)) return "";
  return absl::StrFormat(
      "before it is trained on them, the model ranks the new rows worse than "
      "chance (AUC %.6f of %d held out): does 1 mean the same in their labels "
      "as in those before?",
      auc, scores.samples);
}

void RunWarnings::Warn(const char* rule, const std::string& message) {
  if (said_.insert(rule).second) fresh_.push_back(message);
}

}  // namespace cistern
