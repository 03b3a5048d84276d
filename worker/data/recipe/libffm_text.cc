// Reads libffm lines.
#include <set>

#include "absl/strings/numbers.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {
namespace {

class LibffmText : public TextTable {
 public:
  LibffmText(std::unique_ptr<LineReader> lines, FeatureValues values,
             std::vector<std::string> columns)
      : lines_(std::move(lines)),
        columns_(std::move(columns)),
        features_(NewLibffmLine(values, columns_)) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  const std::unique_ptr<LineReader> lines_;
  const std::vector<std::string> columns_;
  const std::unique_ptr<FeatureLine> features_;
};

absl::StatusOr<bool> LibffmText::Next(TextRow* row) {
  std::vector<absl::string_view> tokens;
  CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens(*lines_, TextFormat::kLibffm, &tokens));
  if (!found) return false;
  row->line = lines_->line();
  row->fields.assign(1, tokens[0]);
  CISTERN_RETURN_IF_ERROR(
      lines_->WithPlace(features_->Split(absl::MakeSpan(tokens).subspan(1), &row->fields)));
  return true;
}

// "label" and the fields of all lines, by number.
absl::StatusOr<std::vector<std::string>> ColumnsOf(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(path));
  std::set<std::pair<uint64_t, std::string>> fields;
  std::vector<absl::string_view> tokens;
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens(*lines, TextFormat::kLibffm, &tokens));
    if (!found) break;
    for (size_t i = 1; i < tokens.size(); ++i) {
      absl::string_view field;
      if (!LibffmField(tokens[i], &field)) continue;  // refused with its line when it is read
      uint64_t number = 0;
      if (!absl::SimpleAtoi(field, &number)) number = UINT64_MAX;
      fields.emplace(number, std::string(field));
    }
  }
  std::vector<std::string> columns = {"label"};
  for (const auto& [number, name] : fields) columns.push_back(name);
  if (columns.size() > 1) return columns;
  return absl::DataLossError(
      absl::StrCat(path, " holds no field:feature:value, which libffm lines are made of"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenLibffm(const std::string& path,
                                                      const TextOptions& options) {
  std::vector<std::string> names = options.columns;
  if (names.empty()) {
    if (path == "-") {
      return absl::InvalidArgumentError(
          "standard input cannot be read twice, which libffm needs: name a file");
    }
    CISTERN_ASSIGN_OR_RETURN(names, ColumnsOf(path));
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  return std::make_unique<LibffmText>(std::move(lines), options.values, std::move(names));
}

}  // namespace cistern::data
