#include "app/predict/prediction_table.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace cistern::app {

absl::StatusOr<std::unique_ptr<PredictionTable>> PredictionTable::Create(
    FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
    size_t label_dim, const std::vector<std::string>& label_names) {
  std::vector<std::string> names;
  for (size_t i = 0; i < label_dim; ++i) {
    const std::string label = label_names.empty() ? absl::StrCat(i) : label_names[i];
    names.push_back(label_dim == 1 ? "prediction" : absl::StrCat("prediction_", label));
    // A kept column can have this name: that of an earlier model.
    const std::string usual = names.back();
    for (int n = 2; std::count(kept.begin(), kept.end(), names.back()) > 0; ++n) {
      names.back() = absl::StrCat(usual, "_new", n == 2 ? "" : absl::StrCat(n));
    }
  }
  std::unique_ptr<PredictionTable> table(new PredictionTable());
  for (const char* const ending :
       {".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".feather", ".arrow", ".avro", ".orc",
        ".pkl", ".npy", ".npz", ".h5", ".xz", ".bz2", ".zip"}) {
    if (!absl::EndsWithIgnoreCase(path, ending)) continue;
    return WithFix(WithOptions(absl::InvalidArgumentError(
                                   absl::StrCat(path, ": ", ending + 1, " is not written")),
                               {"output"}),
                   "name it *.csv, *.tsv or *.parquet (*.csv.gz, *.tsv.gz)");
  }
  if (absl::EndsWith(path, ".zst")) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError(absl::StrCat(path, ": zstd is not written")),
                    {"output"}),
        "name it *.gz, or compress it afterwards");
  }
  if (absl::EndsWith(path, ".parquet")) {
    CISTERN_ASSIGN_OR_RETURN(table->parquet_,
                             data::CreateParquetPredictions(files, path, kept, names));
    return table;
  }
  absl::string_view name = path;
  if (absl::ConsumeSuffix(&name, ".gz")) table->gzip_ = std::make_unique<GzipWriter>();
  table->tabs_ = absl::EndsWith(name, ".tsv") || absl::EndsWith(name, ".txt");
  CISTERN_ASSIGN_OR_RETURN(table->file_, NewFile::Create(files, path));
  table->file_->WillBeRead();
  for (const std::string& column : kept) table->AppendField(column);
  for (const std::string& column : names) table->AppendField(column);
  CISTERN_RETURN_IF_ERROR(table->EndRow());
  return table;
}

absl::Status PredictionTable::Append(absl::Span<const std::string> kept,
                                     absl::Span<const float> predictions) {
  if (parquet_ != nullptr) return parquet_->Append(kept, predictions);
  for (const std::string& text : kept) AppendField(text);
  for (const float prediction : predictions) AppendField(absl::StrFormat("%.9g", prediction));
  return EndRow();
}

// TSV has no quotes: a tab or a line end inside a field becomes a space.
void PredictionTable::AppendField(absl::string_view text) {
  if (fields_++ > 0) row_ += tabs_ ? '\t' : ',';
  if (tabs_) {
    absl::StrAppend(&row_, absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}, {"\r", " "}}));
  } else if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    absl::StrAppend(&row_, text);
  } else {
    absl::StrAppend(&row_, "\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
  }
}

absl::Status PredictionTable::EndRow() {
  row_ += '\n';
  std::string packed;
  if (gzip_ != nullptr) gzip_->Append(row_, &packed);
  const absl::Status appended = file_->Append(gzip_ != nullptr ? packed : row_);
  row_.clear();
  fields_ = 0;
  return appended;
}

absl::Status PredictionTable::Close() {
  if (parquet_ != nullptr) return parquet_->Close();
  if (gzip_ != nullptr) {
    std::string packed;
    gzip_->Finish(&packed);
    CISTERN_RETURN_IF_ERROR(file_->Append(packed));
  }
  return file_->Close();
}

}  // namespace cistern::app
