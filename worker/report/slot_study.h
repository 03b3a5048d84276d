// RUN/importance.json: what each slot and each dense column contributes to the predictions of a
// trained model, and where its values are calibrated worst (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern::report {

inline constexpr char kSlotStudyFile[] = "importance.json";

// Samples that hold one value of a slot.
struct ValueCalibration {
  uint64_t key = 0;
  uint64_t samples = 0;
  // Sums of labels and predictions. With weights: `samples` times their weighted means.
  double positives = 0, predicted = 0;
  std::optional<double> auc;  // among these samples; nullopt: one class only
};

// How much worse the model predicts if one column is permuted among the samples.
struct Importance {
  double auc_drop = 0, logloss_rise = 0;
};

struct SlotStudy {
  std::string input;                                 // the sparse input's name in the model file
  uint32_t slot = 0;                                 // in the input
  uint64_t keys = 0, unseen_keys = 0;                // distinct
  uint64_t occurrences = 0, unseen_occurrences = 0;  // of keys in samples
  uint64_t empty_samples = 0;
  uint64_t longest = 0;  // keys of a sample
  Importance importance;
  std::vector<ValueCalibration> worst;  // by how sure the difference is, descending
};

struct ColumnStudy {
  uint32_t column = 0;  // of the dense input
  double mean = 0, deviation = 0, lowest = 0, highest = 0;
  Importance importance;
};

struct ModelStudy {
  uint64_t samples = 0;  // that were studied, the first of the data
  double positives = 0;  // likewise
  std::optional<double> auc;
  double logloss = 0;
  std::vector<SlotStudy> slots;
  std::vector<ColumnStudy> columns;
};

std::string FormatModelStudy(const ModelStudy& study);
// kDataLoss: not JSON, or another format.
absl::StatusOr<ModelStudy> ParseModelStudy(const std::string& text);

}  // namespace cistern::report
