// Reads libffm lines.
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "worker/data/recipe/line_reader.h"
#include "worker/data/recipe/text_table.h"
#include "worker/data/recipe/value_text.h"

namespace cistern {
namespace {

// A token "field:feature:value".
struct FfmToken {
  absl::string_view field, feature, value;
};

bool SplitToken(absl::string_view token, FfmToken* parts) {
  const std::vector<absl::string_view> texts = absl::StrSplit(token, ':');
  if (texts.size() != 3 || texts[0].empty() || texts[1].empty()) return false;
  *parts = {texts[0], texts[1], texts[2]};
  return IsFiniteNumber(parts->value);
}

class LibffmText : public TextTable {
 public:
  LibffmText(std::unique_ptr<LineReader> lines, bool any_value, std::vector<std::string> columns)
      : lines_(std::move(lines)), any_value_(any_value), columns_(std::move(columns)) {
    for (size_t i = 0; i < columns_.size(); ++i) places_[columns_[i]] = i;
    fields_.resize(columns_.size());
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  absl::Status Take(absl::string_view token);

  const std::unique_ptr<LineReader> lines_;
  const bool any_value_;
  const std::vector<std::string> columns_;
  std::map<std::string, size_t, std::less<>> places_;  // of columns_
  std::vector<std::string> fields_;
};

// The tokens of the next line that is not empty; false at the end.
absl::StatusOr<bool> NextTokens(LineReader& lines, std::vector<absl::string_view>* tokens) {
  tokens->clear();
  while (tokens->empty()) {
    absl::string_view line;
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) return false;
    *tokens = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  }
  return true;
}

absl::Status LibffmText::Take(absl::string_view token) {
  FfmToken parts;
  if (!SplitToken(token, &parts)) {
    return lines_->DataLoss(
        absl::StrCat("holds '", token.substr(0, 40), "', not field:feature:value"));
  }
  double value = 0;
  ReadNumber(parts.value, &value);
  if (value != 1 && !any_value_) {
    return WithOptions(lines_->DataLoss(absl::StrCat(
                           "holds '", token.substr(0, 40),
                           "': the value of a key must be 1, unless values are dropped")),
                       {"any_value"});
  }
  const auto place = places_.find(absl::string_view(parts.field));
  if (place == places_.end()) {
    return lines_->DataLoss(absl::StrCat("has a field ", parts.field.substr(0, 40),
                                         ", which the first data did not have"));
  }
  if (value == 0) return absl::OkStatus();
  std::string& field = fields_[place->second];
  absl::StrAppend(&field, field.empty() ? "" : " ", parts.feature);
  return absl::OkStatus();
}

absl::StatusOr<bool> LibffmText::Next(TextRow* row) {
  std::vector<absl::string_view> tokens;
  CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens(*lines_, &tokens));
  if (!found) return false;
  for (std::string& field : fields_) field.clear();
  fields_[0] = std::string(tokens[0]);
  for (size_t i = 1; i < tokens.size(); ++i) CISTERN_RETURN_IF_ERROR(Take(tokens[i]));
  row->line = lines_->line();
  row->fields.assign(fields_.begin(), fields_.end());
  return true;
}

// "label" and the fields of all lines, by number.
absl::StatusOr<std::vector<std::string>> ColumnsOf(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(path));
  std::set<std::pair<uint64_t, std::string>> fields;
  std::vector<absl::string_view> tokens;
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens(*lines, &tokens));
    if (!found) break;
    for (size_t i = 1; i < tokens.size(); ++i) {
      FfmToken parts;
      if (!SplitToken(tokens[i], &parts)) continue;  // refused with its line when it is read
      uint64_t number = 0;
      if (!absl::SimpleAtoi(parts.field, &number)) number = UINT64_MAX;
      fields.emplace(number, std::string(parts.field));
    }
  }
  std::vector<std::string> columns = {"label"};
  for (const auto& [number, name] : fields) columns.push_back(name);
  if (columns.size() > 1) return columns;
  return absl::DataLossError(
      absl::StrCat(path, " holds no field:feature:value, which libffm lines are made of"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenLibffm(const std::string& path, bool any_value,
                                                      const std::vector<std::string>& columns) {
  std::vector<std::string> names = columns;
  if (names.empty()) {
    if (path == "-") {
      return absl::InvalidArgumentError(
          "standard input cannot be read twice, which libffm needs: name a file");
    }
    CISTERN_ASSIGN_OR_RETURN(names, ColumnsOf(path));
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  return std::make_unique<LibffmText>(std::move(lines), any_value, std::move(names));
}

}  // namespace cistern
