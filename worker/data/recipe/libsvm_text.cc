// Reads libsvm and libfm lines.
#include "absl/strings/match.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {
namespace {

class LibsvmText : public TextTable {
 public:
  LibsvmText(std::unique_ptr<LineReader> lines, const TextOptions& options)
      : lines_(std::move(lines)), options_(options) {}

  // Reads the first line, which determines the number of slots.
  absl::Status ReadFirst();
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  // Splits the next line that is not empty; false at the end.
  absl::StatusOr<bool> NextLine();

  std::unique_ptr<LineReader> lines_;
  const TextOptions options_;
  std::vector<std::string> columns_;
  std::unique_ptr<FeatureLine> features_;
  bool first_pending_ = false;
  std::vector<absl::string_view> tokens_;  // label and features
};

absl::Status LibsvmText::ReadFirst() {
  CISTERN_ASSIGN_OR_RETURN(first_pending_, NextLine());
  if (!first_pending_) return absl::DataLossError(absl::StrCat(lines_->path(), " holds no sample"));
  columns_ = {"label"};
  const size_t first = tokens_.size() > 1 && absl::StartsWith(tokens_[1], "qid:") ? 2 : 1;
  if (options_.single_slot) {
    columns_.push_back("features");
  } else {
    for (size_t i = first; i < tokens_.size(); ++i) columns_.push_back(absl::StrCat(i - first));
  }
  features_ = NewLibsvmLine(options_.values, options_.single_slot ? 0 : columns_.size() - 1);
  std::vector<absl::string_view> fields;
  return lines_->WithPlace(features_->Split(absl::MakeSpan(tokens_).subspan(1), &fields));
}

absl::StatusOr<bool> LibsvmText::Next(TextRow* row) {
  if (!first_pending_) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextLine());
    if (!found) return false;
  }
  first_pending_ = false;
  row->line = lines_->line();
  row->fields.assign(1, tokens_[0]);
  CISTERN_RETURN_IF_ERROR(
      lines_->WithPlace(features_->Split(absl::MakeSpan(tokens_).subspan(1), &row->fields)));
  return true;
}

absl::StatusOr<bool> LibsvmText::NextLine() {
  CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens(*lines_, TextFormat::kLibsvm, &tokens_));
  if (!found || !absl::StrContains(tokens_[0], ':')) return found;
  return lines_->DataLoss(absl::StrCat("its label is '", tokens_[0].substr(0, 40),
                                       "', a label with a weight (label:weight): weights of "
                                       "samples are not used; remove them (sed "
                                       "'s/^\\([^ :]*\\):[^ ]*/\\1/')"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenLibsvm(const std::string& path,
                                                      const TextOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  auto text = std::make_unique<LibsvmText>(std::move(lines), options);
  CISTERN_RETURN_IF_ERROR(text->ReadFirst());
  return text;
}

}  // namespace cistern::data
