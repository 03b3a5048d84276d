#include "cli/command/prediction_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<PredictionTable>> PredictionTable::Create(
    FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
    size_t label_dim) {
  const bool tabs = absl::EndsWith(path, ".tsv") || absl::EndsWith(path, ".txt");
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Create(files, path));
  std::unique_ptr<PredictionTable> table(new PredictionTable(std::move(file), tabs));
  for (const std::string& name : kept) table->AppendField(name);
  for (size_t i = 0; i < label_dim; ++i) {
    table->AppendField(label_dim == 1 ? "prediction" : absl::StrCat("prediction_", i));
  }
  CISTERN_RETURN_IF_ERROR(table->EndRow());
  return table;
}

absl::Status PredictionTable::Append(absl::Span<const std::string> kept,
                                     absl::Span<const float> predictions) {
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
  const absl::Status appended = file_->Append(row_);
  row_.clear();
  fields_ = 0;
  return appended;
}

}  // namespace cistern
