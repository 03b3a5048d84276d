#include "worker/model/metric/metric_set.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "worker/model/metric/auc.h"
#include "worker/model/metric/bucket_error.h"
#include "worker/model/metric/ndcg.h"

namespace cistern::model {
namespace {

MetricValue Defined(double value) {
  MetricValue made;
  made.value = value;
  return made;
}

MetricValue Undefined(absl::string_view note) {
  MetricValue made;
  made.note = std::string(note);
  return made;
}

MetricValue Of(const absl::StatusOr<double>& value) {
  return value.ok() ? Defined(*value) : Undefined(value.status().message());
}

MetricValue Ratio(double above, double below, absl::string_view note) {
  return below > 0 ? Defined(above / below) : Undefined(note);
}

MetricValue CountOf(const std::string& name, uint64_t count) {
  MetricValue made = Defined(static_cast<double>(count));
  made.name = name;
  made.is_count = true;
  return made;
}

absl::Status NotFinite(const char* what, double value, uint64_t sample, size_t label,
                       size_t label_dim) {
  return absl::DataLossError(absl::StrCat(
      "the ", what, " of sample ", sample,
      label_dim > 1 ? absl::StrCat(", label ", label, ",") : std::string(), " is ", value,
      ": metrics are undefined; check the model's weights and the sample's features for such "
      "numbers (cistern data inspect shows the data)"));
}

}  // namespace

void MetricSet::OfLabel::Merge(const OfLabel& other) {
  scores.Merge(other.scores);
  log_loss.Merge(other.log_loss);
  average_loss.Merge(other.average_loss);
  calibration.Merge(other.calibration);
  groups.Merge(other.groups);
}

MetricSet::MetricSet(const MetricOptions& options)
    : options_(options), metrics_{Metric::kAuc, Metric::kLogLoss}, labels_(options.label_dim) {
  CISTERN_CHECK(options.label_weights.empty() || options.label_weights.size() == options.label_dim);
  for (const Metric metric : options.metrics) {
    if (!Asks(metric)) metrics_.push_back(metric);
  }
}

bool MetricSet::Asks(Metric metric) const {
  return std::find(metrics_.begin(), metrics_.end(), metric) != metrics_.end();
}

absl::Status MetricSet::Add(absl::Span<const float> labels, absl::Span<const float> predictions,
                            absl::Span<const std::optional<Key>> groups,
                            absl::Span<const double> margins, absl::Span<const float> weights) {
  const size_t dim = labels_.size();
  const bool grouped = Asks(Metric::kGauc);
  CISTERN_CHECK(labels.size() == predictions.size() && labels.size() % dim == 0);
  CISTERN_CHECK(margins.empty() || margins.size() == labels.size());
  CISTERN_CHECK(!grouped || groups.size() == labels.size() / dim);
  CISTERN_CHECK(weights.empty() || weights.size() == labels.size() / dim);
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t k = i % dim;
    const float label = labels[i], prediction = predictions[i];
    if (!std::isfinite(label)) return NotFinite("label", label, samples_ + i / dim, k, dim);
    if (!std::isfinite(prediction)) {
      return NotFinite("prediction", prediction, samples_ + i / dim, k, dim);
    }
    if (!margins.empty() && !std::isfinite(margins[i])) {
      return NotFinite("logit", margins[i], samples_ + i / dim, k, dim);
    }
    const float sample_weight = weights.empty() ? 1.0f : weights[i / dim];
    if (sample_weight == 0) continue;
    OfLabel& of = labels_[k];
    if (options_.masked_below && label < *options_.masked_below) {
      of.average_loss.AddNone(double{sample_weight});
      continue;
    }
    of.scores.Add(label, prediction, sample_weight);
    const double clipped = margins.empty() ? ClippedCrossEntropy(label, prediction)
                                           : ClippedCrossEntropyOfMargin(label, margins[i]);
    const double weight = options_.label_weights.empty() ? 1.0 : options_.label_weights[k];
    of.log_loss.Add(clipped, double{sample_weight});
    of.average_loss.Add(
        weight * (margins.empty() ? clipped : CrossEntropyOfMargin(label, margins[i])),
        double{sample_weight});
    of.calibration.Add(label, prediction, double{sample_weight});
    if (!grouped) continue;
    if (groups[i / dim]) {
      of.groups.Add(*groups[i / dim], label, prediction, sample_weight);
    } else {
      of.groups.AddUngrouped();
    }
  }
  samples_ += labels.size() / dim;
  return absl::OkStatus();
}

MetricValues MetricSet::Values() {
  MetricValues values;
  if (labels_.size() == 1) {
    AppendValues(labels_[0], "", &values);
    return values;
  }
  OfLabel all;
  for (const OfLabel& label : labels_) all.Merge(label);
  AppendValues(all, "", &values);
  for (size_t k = 0; k < labels_.size(); ++k) {
    const std::string name =
        options_.label_names.empty() ? absl::StrCat(k) : options_.label_names[k];
    AppendValues(labels_[k], absl::StrCat("[", name, "]"), &values);
  }
  return values;
}

std::optional<double> MetricSet::AucError() const {
  if (labels_.size() != 1 || !labels_[0].scores.is_sorted()) return std::nullopt;
  const RankedScores& scores = labels_[0].scores;
  const absl::StatusOr<double> auc = Auc(scores);
  if (!auc.ok() || scores.is_weighted()) return std::nullopt;
  return AucStandardError(*auc, scores.positives().size(), scores.negatives().size());
}

void MetricSet::AppendValues(OfLabel& label, const std::string& suffix,
                             MetricValues* values) const {
  label.scores.Sort(options_.sort);
  for (const Metric metric : metrics_) {
    if (metric == Metric::kGauc) {
      const GroupAuc::Result groups = label.groups.Value();
      values->push_back(groups.groups > groups.left_out
                            ? Defined(groups.area)
                            : Undefined(absl::StrCat("GAUC is undefined: none of ", groups.groups,
                                                     " groups contains both classes")));
      values->back().name = FieldName(metric) + suffix;
      values->push_back(CountOf("gauc_groups" + suffix, groups.groups));
      values->push_back(CountOf("gauc_groups_left_out" + suffix, groups.left_out));
      values->push_back(CountOf("gauc_samples_left_out" + suffix, groups.samples_left_out));
    } else {
      values->push_back(ValueOf(metric, label));
      values->back().name = FieldName(metric) + suffix;
    }
  }
}

MetricValue MetricSet::ValueOf(Metric metric, OfLabel& label) const {
  const Calibration& sums = label.calibration;
  if (metric == Metric::kAuc) return Of(Auc(label.scores));
  if (metric == Metric::kLogLoss) return Defined(label.log_loss.Value());
  if (metric == Metric::kAverageLoss) return Defined(label.average_loss.Value());
  if (sums.count() == 0) return Undefined("there are no predictions");
  switch (metric) {
    case Metric::kNormalizedEntropy:
      return Ratio(label.log_loss.Value(), sums.entropy(),
                   "NE is undefined: all labels are the same");
    case Metric::kCopc:
      return Ratio(sums.actual_ctr(), sums.predicted_ctr(),
                   "COPC is undefined: all predictions are 0");
    case Metric::kPcoc:
      return Ratio(sums.predicted_ctr(), sums.actual_ctr(), "PCOC is undefined: all labels are 0");
    case Metric::kBucketError:
      return Of(BucketError(label.scores));
    case Metric::kActualCtr:
      return Defined(sums.actual_ctr());
    case Metric::kPredictedCtr:
      return Defined(sums.predicted_ctr());
    case Metric::kMae:
      return Defined(sums.mean_absolute_error());
    case Metric::kRmse:
      return Defined(sums.root_mean_squared_error());
    case Metric::kSmape:
      return Defined(sums.symmetric_percentage_error());
    case Metric::kHitRate:
      return Of(HitRate(label.scores));
    case Metric::kNdcg:
      return Of(Ndcg(label.scores));
    default:
      return Undefined("");
  }
}

}  // namespace cistern::model
