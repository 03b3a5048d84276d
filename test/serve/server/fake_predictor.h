// A predictor without a model, whose predictions anyone can compute:
//
//   p[sample, label] = 1 / (1 + label + sum of dense + sum over inputs of (input + 1) * keys)
//
// so that every value of a request, and its place, shows in the reply.
#pragma once

#include <atomic>
#include <string>

#include "absl/synchronization/mutex.h"
#include "serve/predictor/predictor.h"

namespace cistern::serve {

// Threads: any thread.
class FakePredictor : public Predictor {
 public:
  // Two sparse inputs of 2 and 1 slots, two dense features, one label, commit 7.
  FakePredictor() {
    shape_.dense_dim = 2;
    shape_.inputs = {{"wide", 2}, {"deep", 1}};
  }
  explicit FakePredictor(PredictorShape shape) : shape_(std::move(shape)) {}

  std::string name() const override {
    const absl::MutexLock lock(&mutex_);
    return name_;
  }
  void set_name(const std::string& name) {
    const absl::MutexLock lock(&mutex_);
    name_ = name;
  }
  FollowState follow_state() const override { return {follow_failures_, follow_failures_ > 0}; }
  void set_follow_failures(uint64_t failures) { follow_failures_ = failures; }
  const PredictorShape& shape() const override { return shape_; }
  ServedVersion version() const override { return {commit_, "folder"}; }
  size_t max_samples() const override { return 100; }

  absl::Status Predict(const PredictRequest& request, absl::Span<float> predictions,
                       ServedVersion* version, uint64_t* unseen) override {
    ++predicted_;
    {
      absl::MutexLock lock(&mutex_);
      ++inside_;
      mutex_.Await(absl::Condition(&open_));
      --inside_;
    }
    if (!failure_.ok()) return failure_;
    uint64_t large = 0;  // keys of 1,000 and more count as unseen
    for (size_t sample = 0; sample < request.samples; ++sample) {
      double sum = 0;
      for (size_t i = 0; i < shape_.dense_dim; ++i) {
        sum += request.dense[sample * shape_.dense_dim + i];
      }
      for (size_t i = 0; i < shape_.inputs.size(); ++i) {
        const size_t slots = shape_.inputs[i].slot_num;
        const auto& input = request.inputs[i];
        for (uint32_t k = input.offsets[sample * slots]; k < input.offsets[(sample + 1) * slots];
             ++k) {
          sum += static_cast<double>(input.keys[k]) * static_cast<double>(i + 1);
          large += input.keys[k] >= 1000;
        }
      }
      for (size_t label = 0; label < shape_.label_dim; ++label) {
        predictions[sample * shape_.label_dim + label] =
            static_cast<float>(1 / (1 + static_cast<double>(label) + sum));
      }
    }
    *version = this->version();
    if (unseen != nullptr) *unseen = large;
    return absl::OkStatus();
  }

  void set_commit(uint64_t commit) { commit_ = commit; }
  void set_failure(absl::Status failure) { failure_ = std::move(failure); }
  int predicted() const { return predicted_; }

  // Predictions wait inside until Release.
  void Hold() {
    absl::MutexLock lock(&mutex_);
    open_ = false;
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    open_ = true;
  }
  void AwaitInside(int count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return inside_ >= count; };
    mutex_.Await(absl::Condition(&reached));
  }

 private:
  std::string name_ ABSL_GUARDED_BY(mutex_) = "ads";
  PredictorShape shape_;
  std::atomic<uint64_t> commit_{7}, follow_failures_{0};
  absl::Status failure_;
  std::atomic<int> predicted_{0};
  mutable absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern::serve
