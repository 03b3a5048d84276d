// Calibration: predicted against actual click-through rate.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/model/metric/exact_sum.h"

namespace cistern::model {

// Weighted sums over labels and predictions, and the calibration metrics computed from them.
//
// Threads: one at a time.
class Calibration {
 public:
  // weight: above 0.
  void Add(float label, float prediction, double weight = 1) {
    const double error = static_cast<double>(prediction) - static_cast<double>(label);
    labels_.Add(weight * static_cast<double>(label));
    predictions_.Add(weight * static_cast<double>(prediction));
    absolute_errors_.Add(weight * std::fabs(error));
    squared_errors_.Add(weight * error * error);
    const double size = std::fabs(label) + std::fabs(prediction);
    if (size > 0) relative_errors_.Add(weight * std::fabs(error) / (size / 2));
    weights_.Add(weight);
    ++count_;
  }
  void Merge(const Calibration& other) {
    labels_.Merge(other.labels_);
    predictions_.Merge(other.predictions_);
    absolute_errors_.Merge(other.absolute_errors_);
    squared_errors_.Merge(other.squared_errors_);
    relative_errors_.Merge(other.relative_errors_);
    weights_.Merge(other.weights_);
    count_ += other.count_;
  }

  uint64_t count() const { return count_; }
  // The metrics below require count() > 0.
  double actual_ctr() const { return Mean(labels_); }
  double predicted_ctr() const { return Mean(predictions_); }
  double mean_absolute_error() const { return Mean(absolute_errors_); }
  double root_mean_squared_error() const { return std::sqrt(Mean(squared_errors_)); }
  // SMAPE: the mean of |p - y| / ((|p| + |y|) / 2), from 0 to 2; a sample with p = y = 0 adds 0.
  double symmetric_percentage_error() const { return Mean(relative_errors_); }
  // The entropy of the labels in nats: the log loss of a model that predicts the base rate. 0 if
  // all labels are the same.
  double entropy() const {
    const double p = actual_ctr();
    return p > 0 && p < 1 ? -p * std::log(p) - (1 - p) * std::log1p(-p) : 0.0;
  }

 private:
  double Mean(const ExactSum& sum) const { return sum.Value() / weights_.Value(); }
  ExactSum labels_, predictions_, absolute_errors_, squared_errors_, relative_errors_;
  WeightSum weights_;
  uint64_t count_ = 0;
};

}  // namespace cistern::model
