// Predictions as a table: kept columns of the input, then the prediction.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/format/output_file.h"

namespace cistern {

// CSV, or TSV for a file whose name ends in .tsv or .txt. The first line names the columns; with
// several labels there are several predictions, prediction_0, prediction_1, ... A prediction has 9
// significant digits, from which the same float is read back.
//
// Threads: one at a time.
class PredictionTable {
 public:
  static absl::StatusOr<std::unique_ptr<PredictionTable>> Create(
      FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
      size_t label_dim);

  // kept: the texts of the kept columns. predictions: [label_dim].
  absl::Status Append(absl::Span<const std::string> kept, absl::Span<const float> predictions);
  absl::Status Close() { return file_->Close(); }

 private:
  PredictionTable(std::unique_ptr<OutputFile> file, bool tabs)
      : file_(std::move(file)), tabs_(tabs) {}
  void AppendField(absl::string_view text);
  absl::Status EndRow();

  const std::unique_ptr<OutputFile> file_;
  const bool tabs_;
  std::string row_;
  size_t fields_ = 0;  // of row_
};

}  // namespace cistern
