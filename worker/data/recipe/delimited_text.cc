// Reads CSV and TSV.
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/base/shown_text.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/field_splitter.h"
#include "worker/data/recipe/text_table.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

class DelimitedText : public TextTable {
 public:
  DelimitedText(std::unique_ptr<LineReader> lines, const TextOptions& options)
      : lines_(std::move(lines)),
        options_(options),
        columns_(options.columns),
        splitter_(options.delimiter, options.quotes, options.trim) {}

  absl::Status ReadHeader();
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  bool can_continue() const override { return bad_row_; }
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  // Splits the next line that is not empty; false at the end.
  absl::StatusOr<bool> NextFields(std::vector<absl::string_view>* fields);
  absl::Status TakeFirstLine();
  absl::Status CheckNames(bool from_header) const;
  absl::StatusOr<bool> RepeatsHeader(const std::vector<absl::string_view>& fields) const;

  std::unique_ptr<LineReader> lines_;
  const TextOptions options_;
  std::vector<std::string> columns_;
  absl::flat_hash_set<std::string> names_;  // columns_
  bool bad_row_ = false;                    // the last row has a wrong number of fields
  FieldSplitter splitter_;
  // The first line was read and is a row, not a header.
  bool first_pending_ = false;
  std::vector<absl::string_view> first_;
};

absl::Status DelimitedText::ReadHeader() {
  bool from_header = columns_.empty();
  if (from_header || options_.choose_columns != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextFields(&first_));
    if (!found) {
      return absl::DataLossError(
          absl::StrCat(lines_->path(), " is empty",
                       from_header ? ": no header line" : ": it has no row to read"));
    }
    const std::vector<std::string> names(first_.begin(), first_.end());
    if (options_.choose_columns != nullptr) {
      absl::StatusOr<std::vector<std::string>> columns = options_.choose_columns(names);
      if (!columns.ok()) return lines_->WithPlace(columns.status());
      from_header = columns->empty();
      columns_ = *std::move(columns);
    }
    if (from_header) columns_ = names;
    first_pending_ = !from_header;
  }
  CISTERN_RETURN_IF_ERROR(CheckNames(from_header));
  names_.insert(columns_.begin(), columns_.end());
  return absl::OkStatus();
}

absl::Status DelimitedText::CheckNames(bool from_header) const {
  std::set<absl::string_view> names;
  for (const std::string& name : columns_) {
    if (!names.insert(name).second) {
      const std::string twice = absl::StrCat("column '", name, "' is named twice");
      if (!from_header)
        return WithOptions(absl::InvalidArgumentError("the given columns: " + twice),
                           {"columns=label,age,..."});
      const bool is_data = IsFiniteNumber(name);
      if (name.empty()) {
        return lines_->DataLoss("two columns have no name: name them in the header line");
      }
      // Other names than those of a header line would be taken for another order of its columns.
      if (!is_data) return lines_->DataLoss(twice + ": rename one of them in the header line");
      return WithOptions(
          lines_->DataLoss(twice + ": if the file has no header line, name the columns"),
          {"columns=label,age,..."});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DelimitedText::Next(TextRow* row) {
  bool found = true;
  bad_row_ = false;
  if (first_pending_) {
    row->fields = first_;
    first_pending_ = false;
  } else {
    CISTERN_ASSIGN_OR_RETURN(found, NextFields(&row->fields));
  }
  while (found) {
    CISTERN_ASSIGN_OR_RETURN(const bool header, RepeatsHeader(row->fields));
    if (!header) break;
    CISTERN_ASSIGN_OR_RETURN(found, NextFields(&row->fields));
  }
  row->line = lines_->line();
  bad_row_ = found && row->fields.size() != columns_.size();
  if (!bad_row_) return found;
  if (row->fields.size() == 1) {  // comments, rulers, and what programs write at the end
    const std::string removed = absl::StartsWith(row->fields[0], "#")
                                    ? "grep -v '^#'"
                                    : absl::StrCat("sed ", row->line, "d");
    return lines_->DataLoss(
        absl::StrCat("'", ShownText(row->fields[0], 40), "' is one field, but there are ",
                     columns_.size(), " columns: if it is no row, remove it (", removed, " ",
                     lines_->path(), " > table.csv); else check the delimiter"));
  }
  return lines_->DataLoss(absl::StrCat(
      "has ", row->fields.size(), " fields, but there are ", columns_.size(),
      " columns: check the delimiter, and that the line is complete; a field that holds the "
      "delimiter needs quotes"));
}

absl::StatusOr<bool> DelimitedText::RepeatsHeader(
    const std::vector<absl::string_view>& fields) const {
  if (fields.size() != columns_.size() || fields.size() < 2) return false;
  const auto name = [&](size_t i) {
    absl::string_view text = fields[i];
    if (i == 0) absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // the mark of another file's begin
    return text;
  };
  if (!names_.contains(name(0))) return false;
  bool same = true;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!names_.contains(name(i))) return false;
    same = same && name(i) == columns_[i];
  }
  if (same) return true;
  return lines_->DataLoss(
      "is a header line with the columns in another order than before: split the file there, and "
      "name both files, or a folder of them (columns are matched by name)");
}

absl::StatusOr<bool> DelimitedText::NextFields(std::vector<absl::string_view>* fields) {
  absl::string_view line;
  do {
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines_->Next(&line));
    if (!found) return false;
  } while (line.empty());
  const absl::Status split = splitter_.Split(
      line, [this](absl::string_view* longer) { return lines_->Extend(longer); }, fields);
  if (absl::IsInvalidArgument(split)) return lines_->DataLoss(split.message());
  CISTERN_RETURN_IF_ERROR(split);
  return true;
}

}  // namespace

absl::Status CheckReadable(const TextTable& table, const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    const std::string why = table.WhyUnreadable(column);
    if (why.empty()) continue;
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            "column '", column, "' ", why,
            ": columns hold text, numbers, times, or lists of them; flatten it, or leave it out")),
        {"ignore"});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenDelimited(const std::string& path,
                                                         const TextOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  auto text = std::make_unique<DelimitedText>(std::move(lines), options);
  CISTERN_RETURN_IF_ERROR(text->ReadHeader());
  return text;
}

}  // namespace cistern::data
