#include "worker/data/recipe/json_table.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/data/format/byte_stream.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/json_members.h"

namespace cistern::data {
namespace {

constexpr size_t kBytesPeeked = 4096;  // to find the begin of an array

// The next object of a file, as its line; false at the end.
absl::StatusOr<bool> NextObject(LineReader* lines, absl::string_view* line) {
  do {
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines->Next(line));
    if (!found) return false;
  } while (absl::StripAsciiWhitespace(*line).empty());
  return true;
}

// Collects the columns of files.
class ColumnFinder {
 public:
  explicit ColumnFinder(const ListSeparators& separators) : separators_(separators) {}

  absl::Status Read(const std::string& path);
  absl::Status ReadObject(absl::string_view object);
  JsonColumns Columns() const;

 private:
  void Add(const JsonMember& member);

  const ListSeparators& separators_;
  std::vector<std::string> names_;
  absl::flat_hash_set<std::string> known_;          // names_
  absl::flat_hash_map<std::string, size_t> sizes_;  // how many of names_ are in an object
  std::set<std::string> lists_, nested_;
  absl::flat_hash_set<uint64_t> shapes_;  // of objects that were read
  std::vector<JsonMember> members_;       // of the last one
};

absl::Status ColumnFinder::Read(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(path));
  for (absl::string_view line;;) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextObject(lines.get(), &line));
    if (!found) return absl::OkStatus();
    if (!shapes_.insert(ShapeOf(line)).second) continue;
    const absl::Status read = ReadObject(line);
    if (!read.ok()) return lines->DataLoss(std::string(read.message()));
  }
}

absl::Status ColumnFinder::ReadObject(absl::string_view object) {
  CISTERN_RETURN_IF_ERROR(ReadMembers(object, separators_, &members_));
  for (const JsonMember& member : members_) Add(member);
  return absl::OkStatus();
}

// The name of the object that a member is in; empty for the object of the line.
absl::string_view ObjectOf(absl::string_view name) {
  const size_t point = name.rfind('.');
  return point == absl::string_view::npos ? absl::string_view() : name.substr(0, point);
}

void ColumnFinder::Add(const JsonMember& member) {
  const absl::string_view object = ObjectOf(member.name);
  if (!object.empty() && sizes_[object] > kMaxMembers) return;
  if (member.is_list) lists_.insert(member.name);
  if (member.is_nested_list) nested_.insert(member.name);
  if (!known_.insert(member.name).second) return;
  names_.push_back(member.name);
  if (!object.empty()) ++sizes_[object];
}

JsonColumns ColumnFinder::Columns() const {
  JsonColumns columns;
  for (const std::string& name : names_) {
    const absl::string_view object = ObjectOf(name);
    const auto size = sizes_.find(object);
    if (size == sizes_.end() || size->second <= kMaxMembers) {
      columns.names.push_back(name);
      if (lists_.count(name) > 0 && nested_.count(name) == 0) columns.lists.insert(name);
      if (nested_.count(name) == 0) continue;
      columns.unreadable[name] = "is a list of lists, or of objects and values";
    } else if (columns.unreadable
                   .emplace(object, absl::StrCat("is an object of more than ", kMaxMembers,
                                                 " names, which seem to be values"))
                   .second) {
      columns.names.emplace_back(object);
    }
  }
  return columns;
}

class JsonLines : public TextTable {
 public:
  JsonLines(std::unique_ptr<LineReader> lines, ListSeparators separators, JsonColumns columns)
      : lines_(std::move(lines)), separators_(std::move(separators)), columns_(std::move(columns)) {
    for (size_t i = 0; i < columns_.names.size(); ++i) places_.emplace(columns_.names[i], i);
  }

  const std::vector<std::string>& columns() const override { return columns_.names; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  std::vector<std::string> list_columns() const override {
    return {columns_.lists.begin(), columns_.lists.end()};
  }
  std::string WhyUnreadable(const std::string& column) const override {
    const auto found = columns_.unreadable.find(column);
    return found == columns_.unreadable.end() ? "" : found->second;
  }
  bool has_objects() const override { return true; }
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  const std::unique_ptr<LineReader> lines_;
  const ListSeparators separators_;
  const JsonColumns columns_;
  absl::flat_hash_map<std::string, size_t> places_;  // of columns
  std::vector<JsonMember> members_;                  // that fields refer to
};

absl::StatusOr<bool> JsonLines::Next(TextRow* row) {
  absl::string_view line;
  CISTERN_ASSIGN_OR_RETURN(const bool found, NextObject(lines_.get(), &line));
  if (!found) return false;
  const absl::Status read = ReadMembers(line, separators_, &members_);
  if (!read.ok()) return lines_->DataLoss(std::string(read.message()));
  row->line = lines_->line();
  row->fields.assign(columns_.names.size(), absl::string_view());
  for (const JsonMember& member : members_) {
    const auto place = places_.find(member.name);
    if (place == places_.end() || columns_.unreadable.count(member.name) > 0) continue;
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

absl::StatusOr<JsonColumns> FindJsonColumns(const std::vector<std::string>& files,
                                            const ListSeparators& separators) {
  ColumnFinder finder(separators);
  for (const std::string& file : files) {
    if (IsJsonLines(file)) CISTERN_RETURN_IF_ERROR(finder.Read(file));
  }
  return finder.Columns();
}

absl::StatusOr<JsonColumns> ColumnsOfObject(absl::string_view object,
                                            const ListSeparators& separators) {
  ColumnFinder finder(separators);
  CISTERN_RETURN_IF_ERROR(finder.ReadObject(object));
  return finder.Columns();
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenJsonLines(const std::string& path,
                                                         const ListSeparators& separators,
                                                         const JsonColumns* columns) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  ColumnFinder finder(separators);
  if (columns == nullptr) CISTERN_RETURN_IF_ERROR(finder.Read(path));
  JsonColumns all = columns == nullptr ? finder.Columns() : *columns;
  if (all.names.empty()) {
    return absl::DataLossError(absl::StrCat(path, ": no object with members"));
  }
  return std::make_unique<JsonLines>(std::move(lines), separators, std::move(all));
}

}  // namespace cistern::data
