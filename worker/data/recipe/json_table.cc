#include "worker/data/recipe/json_table.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_depth.h"
#include "worker/data/recipe/line_reader.h"
#include "worker/data/recipe/parquet_table.h"

namespace cistern {
namespace {

using LineJson = nlohmann::json;

// The members of one object, in order: names joined by dots, and texts.
struct Members {
  struct Member {
    std::string name, text;
    bool is_list = false, is_nested_list = false;
  };
  std::vector<Member> members;
  std::string error;
};

// Collects the members of an object. Numbers keep the text that they are written in.
class MemberReader : public nlohmann::json_sax<LineJson> {
 public:
  explicit MemberReader(Members* out) : out_(*out) {}

  bool null() override { return Value(""); }
  bool boolean(bool value) override { return Value(value ? "1" : "0"); }
  bool number_integer(number_integer_t value) override { return Value(absl::StrCat(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Value(absl::StrCat(value)); }
  bool number_float(number_float_t, const string_t& text) override { return Value(text); }
  bool string(string_t& text) override { return Value(text); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    names_.back() = name;
    return true;
  }
  bool start_object(size_t) override {
    if (!lists_.empty()) return Nested();
    if (started_ && names_.empty()) return Fail("holds more than one object");
    started_ = true;
    names_.emplace_back();
    return true;
  }
  bool end_object() override {
    if (lists_.empty()) names_.pop_back();
    if (lists_.empty() || skipped_ == 0) return true;
    --skipped_;
    return true;
  }
  bool start_array(size_t) override {
    if (names_.empty()) return Fail("is an array");
    if (!lists_.empty()) return Nested();
    lists_.push_back(out_.members.size());
    out_.members.push_back({absl::StrJoin(names_, "."), "", /*is_list=*/true});
    return true;
  }
  bool end_array() override {
    if (skipped_ > 0) return --skipped_, true;
    lists_.pop_back();
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return Fail("is not a JSON object");
  }

 private:
  bool Fail(const char* why) {
    if (out_.error.empty()) out_.error = why;
    return false;
  }
  // An object or array in an array.
  bool Nested() {
    out_.members[lists_.back()].is_nested_list = true;
    ++skipped_;
    return true;
  }
  bool Value(const std::string& text) {
    if (names_.empty()) return Fail("is not a JSON object");
    if (skipped_ > 0) return true;
    if (lists_.empty()) {
      out_.members.push_back({absl::StrJoin(names_, "."), text});
      return true;
    }
    std::string& list = out_.members[lists_.back()].text;
    if (text.empty()) return true;
    if (absl::StrContains(text, kListSeparator)) {
      out_.error =
          absl::StrCat("the list '", out_.members[lists_.back()].name, "' has a value with '",
                       std::string(1, kListSeparator), "', which separates values: replace it");
      return false;
    }
    if (!list.empty()) list.push_back(kListSeparator);
    list += text;
    return true;
  }

  Members& out_;
  std::vector<std::string> names_;  // of the objects that are open
  std::vector<size_t> lists_;       // the member of the array that is open; at most one
  size_t skipped_ = 0;              // objects and arrays that are open in it
  bool started_ = false;
};

class JsonLines : public TextTable {
 public:
  explicit JsonLines(std::unique_ptr<LineReader> lines) : lines_(std::move(lines)) {}

  // Reads the first lines, which determine the columns.
  absl::Status Peek();
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  std::vector<std::string> list_columns() const override { return {lists_.begin(), lists_.end()}; }
  std::string WhyUnreadable(const std::string& column) const override {
    return unreadable_.count(column) > 0 ? "is a list of objects or lists" : "";
  }
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  struct Row {
    std::vector<Members::Member> members;
    uint64_t line = 0;
  };
  absl::StatusOr<bool> ReadRow(Row* row);

  std::unique_ptr<LineReader> lines_;
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
  if (JsonDepth(std::string(line)) > kMaxJsonDepth) return lines_->DataLoss("nests too deeply");
  Members members;
  MemberReader reader(&members);
  if (!LineJson::sax_parse(line.begin(), line.end(), &reader)) {
    return lines_->DataLoss(members.error.empty() ? "is not a JSON object" : members.error);
  }
  row->members = std::move(members.members);
  row->line = lines_->line();
  return true;
}

absl::Status JsonLines::Peek() {
  while (peeked_.size() < kJsonRowsPeeked) {
    Row row;
    CISTERN_ASSIGN_OR_RETURN(const bool found, ReadRow(&row));
    if (!found) break;
    for (const Members::Member& member : row.members) {
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
  for (const Members::Member& member : row_.members) {
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

absl::StatusOr<std::unique_ptr<TextTable>> OpenJsonLines(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  auto table = std::make_unique<JsonLines>(std::move(lines));
  CISTERN_RETURN_IF_ERROR(table->Peek());
  return table;
}

}  // namespace cistern
