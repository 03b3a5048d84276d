// Reads libsvm and libfm lines.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "worker/data/recipe/line_reader.h"
#include "worker/data/recipe/text_table.h"

namespace cistern {
namespace {

class LibsvmText : public TextTable {
 public:
  LibsvmText(std::unique_ptr<LineReader> lines, const LibsvmOptions& options)
      : lines_(std::move(lines)), options_(options) {}

  // Reads the first line, which determines the number of slots.
  absl::Status ReadFirst();
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  // Splits the next line that is not empty into label and indices; false at the end.
  absl::StatusOr<bool> NextTokens();
  absl::Status TakeIndex(absl::string_view token);

  std::unique_ptr<LineReader> lines_;
  const LibsvmOptions options_;
  std::vector<std::string> columns_;
  bool first_pending_ = false;
  absl::string_view label_;
  std::vector<absl::string_view> indices_;  // empty text if a value of 0 dropped the index
  std::string joined_;                      // indices_ joined by spaces, for a single slot
};

absl::Status LibsvmText::ReadFirst() {
  CISTERN_ASSIGN_OR_RETURN(first_pending_, NextTokens());
  if (!first_pending_) return absl::DataLossError(absl::StrCat(lines_->path(), " holds no sample"));
  columns_ = {"label"};
  if (options_.single_slot) {
    columns_.push_back("features");
  } else {
    for (size_t i = 0; i < indices_.size(); ++i) columns_.push_back(absl::StrCat(i));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> LibsvmText::Next(TextRow* row) {
  if (!first_pending_) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens());
    if (!found) return false;
  }
  first_pending_ = false;
  row->line = lines_->line();
  row->fields.assign(1, label_);
  if (options_.single_slot) {
    joined_.clear();
    for (absl::string_view index : indices_) absl::StrAppend(&joined_, index, " ");
    row->fields.push_back(joined_);
    return true;
  }
  if (indices_.size() + 1 != columns_.size()) {
    return WithOptions(
        lines_->DataLoss(absl::StrCat("has ", indices_.size(), " features, but the first line has ",
                                      columns_.size() - 1,
                                      ": with a slot per position, all lines need the same number; "
                                      "else put all in a single slot")),
        {"libsvm_slots=single"});
  }
  row->fields.insert(row->fields.end(), indices_.begin(), indices_.end());
  return true;
}

absl::StatusOr<bool> LibsvmText::NextTokens() {
  std::vector<absl::string_view> tokens;
  while (tokens.empty()) {
    absl::string_view line;
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines_->Next(&line));
    if (!found) return false;
    line = line.substr(0, line.find('#'));
    tokens = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  }
  label_ = tokens[0];
  indices_.clear();
  if (absl::StrContains(label_, ':')) {
    return lines_->DataLoss(absl::StrCat("its label is '", label_.substr(0, 40),
                                         "', a label with a weight (label:weight): weights of "
                                         "samples are not used; remove them (sed "
                                         "'s/^\\([^ :]*\\):[^ ]*/\\1/')"));
  }
  const size_t first = tokens.size() > 1 && absl::StartsWith(tokens[1], "qid:") ? 2 : 1;
  for (size_t i = first; i < tokens.size(); ++i) CISTERN_RETURN_IF_ERROR(TakeIndex(tokens[i]));
  return true;
}

absl::Status LibsvmText::TakeIndex(absl::string_view token) {
  const size_t colon = token.find(':');
  double value = 0;
  if (std::count(token.begin(), token.end(), ':') == 2) {
    return WithOptions(lines_->DataLoss(absl::StrCat(
                           "feature ", indices_.size(), " is '", token.substr(0, 40),
                           "', which is libffm (field:feature:value), not libsvm: convert it as "
                           "that format, which makes a slot of each field")),
                       {"format=libffm"});
  }
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtod(token.substr(colon + 1), &value)) {
    return lines_->DataLoss(absl::StrCat("feature ", indices_.size(), " is '", token.substr(0, 40),
                                         "', not index:value"));
  }
  if (value != 1 && !options_.any_value) {
    return WithOptions(lines_->DataLoss(absl::StrCat(
                           "feature ", indices_.size(), " is '", token.substr(0, 40),
                           "': the value of a key must be 1, unless values are dropped")),
                       {"any_value"});
  }
  indices_.push_back(value == 0 ? absl::string_view() : token.substr(0, colon));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenLibsvm(const std::string& path,
                                                      const LibsvmOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  auto text = std::make_unique<LibsvmText>(std::move(lines), options);
  CISTERN_RETURN_IF_ERROR(text->ReadFirst());
  return text;
}

}  // namespace cistern
