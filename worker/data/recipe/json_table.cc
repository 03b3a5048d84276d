#include "worker/data/recipe/json_table.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/data/format/byte_stream.h"
#include "worker/data/recipe/json_members.h"
#include "worker/data/recipe/line_reader.h"

namespace cistern {
namespace {

constexpr size_t kBytesPeeked = 4096;  // to find the begin of an array

class JsonLines : public TextTable {
 public:
  JsonLines(std::unique_ptr<LineReader> lines, ListSeparators separators)
      : lines_(std::move(lines)), separators_(std::move(separators)) {}

  // Reads the first lines, which determine the columns.
  absl::Status Peek();
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  std::vector<std::string> list_columns() const override { return {lists_.begin(), lists_.end()}; }
  std::string WhyUnreadable(const std::string& column) const override {
    return unreadable_.count(column) > 0 ? "is a list of lists, or of objects and values" : "";
  }
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  struct Row {
    std::vector<JsonMember> members;
    uint64_t line = 0;
  };
  absl::StatusOr<bool> ReadRow(Row* row);

  std::unique_ptr<LineReader> lines_;
  const ListSeparators separators_;
  std::vector<std::string> columns_;
  std::map<std::string, size_t> places_;  // of columns_
  std::set<std::string> lists_, unreadable_;
  std::deque<Row> peeked_;
  Row row_;  // that fields refer to
};

absl::StatusOr<bool> JsonLines::ReadRow(Row* row) {
  absl::string_view line;
  do {
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines_->Next(&line));
    if (!found) return false;
  } while (absl::StripAsciiWhitespace(line).empty());
  const absl::Status read = ReadMembers(line, separators_, &row->members);
  if (!read.ok()) return lines_->DataLoss(std::string(read.message()));
  row->line = lines_->line();
  return true;
}

absl::Status JsonLines::Peek() {
  while (peeked_.size() < kJsonRowsPeeked) {
    Row row;
    CISTERN_ASSIGN_OR_RETURN(const bool found, ReadRow(&row));
    if (!found) break;
    for (const JsonMember& member : row.members) {
      if (places_.emplace(member.name, columns_.size()).second) columns_.push_back(member.name);
      if (member.is_list) lists_.insert(member.name);
      if (member.is_nested_list) unreadable_.insert(member.name);
    }
    peeked_.push_back(std::move(row));
  }
  for (const std::string& column : unreadable_) lists_.erase(column);
  if (!columns_.empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(lines_->path(), ": no object with members"));
}

absl::StatusOr<bool> JsonLines::Next(TextRow* row) {
  if (!peeked_.empty()) {
    row_ = std::move(peeked_.front());
    peeked_.pop_front();
  } else {
    CISTERN_ASSIGN_OR_RETURN(const bool found, ReadRow(&row_));
    if (!found) return false;
  }
  row->line = row_.line;
  row->fields.assign(columns_.size(), absl::string_view());
  for (const JsonMember& member : row_.members) {
    const auto place = places_.find(member.name);
    if (place == places_.end() || unreadable_.count(member.name) > 0) continue;
    row->fields[place->second] = member.text;
  }
  return true;
}

}  // namespace

bool IsJsonLines(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe is read only once
  const absl::StatusOr<std::unique_ptr<LineReader>> lines = LineReader::Open(path);
  if (!lines.ok()) return false;
  absl::string_view line;
  // A single object may be a model file.
  size_t objects = absl::StrContains(path, ".jsonl") || absl::StrContains(path, ".ndjson") ? 1 : 0;
  while (objects < 2) {
    const absl::StatusOr<bool> found = (*lines)->Next(&line);
    if (!found.ok() || !*found) return false;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    if (line.size() <= 2 || line.front() != '{' || line.back() != '}') return false;
    ++objects;
  }
  return true;
}

absl::Status CheckNoJsonArray(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<ByteStream>> opened = ByteStream::Open(path);
  if (!opened.ok() || !(*opened)->Fill(kBytesPeeked).ok()) return absl::OkStatus();
  absl::string_view begin((*opened)->data(), std::min(kBytesPeeked, (*opened)->available()));
  absl::ConsumePrefix(&begin, "\xEF\xBB\xBF");
  begin = absl::StripLeadingAsciiWhitespace(begin);
  if (!absl::ConsumePrefix(&begin, "[")) return absl::OkStatus();
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(begin), "{")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is one JSON array; a table has an object a line (JSON Lines): jq -c '.[]' ", path,
      " > table.jsonl"));
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenJsonLines(const std::string& path,
                                                         const ListSeparators& separators) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  auto table = std::make_unique<JsonLines>(std::move(lines), separators);
  CISTERN_RETURN_IF_ERROR(table->Peek());
  return table;
}

}  // namespace cistern
