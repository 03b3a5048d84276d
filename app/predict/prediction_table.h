// Predictions as a table: kept columns of the input, then the prediction.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/io/gzip.h"
#include "common/io/new_file.h"
#include "worker/data/recipe/parquet_table.h"

namespace cistern::app {

// CSV, TSV for a file whose name ends in .tsv or .txt, both compressed if .gz follows, or Parquet
// for one that ends in .parquet. The first line names the columns; with several labels there are
// several predictions: prediction_click, prediction_buy, or prediction_0, prediction_1 of labels
// without names. A prediction has 9 significant digits, from which the same float is read back.
//
// Threads: one at a time.
class PredictionTable {
 public:
  static absl::StatusOr<std::unique_ptr<PredictionTable>> Create(
      FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
      size_t label_dim, const std::vector<std::string>& label_names = {});

  // kept: the texts of the kept columns. predictions: [label_dim].
  absl::Status Append(absl::Span<const std::string> kept, absl::Span<const float> predictions);
  absl::Status Close();

 private:
  PredictionTable() = default;
  void AppendField(absl::string_view text);
  absl::Status EndRow();

  std::unique_ptr<data::ParquetPredictions> parquet_;  // else file_
  std::unique_ptr<NewFile> file_;
  std::unique_ptr<GzipWriter> gzip_;  // null: file_ is not compressed
  bool tabs_ = false;
  std::string row_;
  size_t fields_ = 0;  // of row_
};

}  // namespace cistern::app
