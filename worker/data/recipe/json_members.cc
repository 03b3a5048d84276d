#include "worker/data/recipe/json_members.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_depth.h"

namespace cistern {
namespace {

// Collects the members of an object. Numbers keep the text that they are written in.
class MemberReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  MemberReader(const ListSeparators& separators, std::vector<JsonMember>* out, std::string* error)
      : separators_(separators), out_(*out), error_(*error) {}

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
    lists_.push_back(out_.size());
    out_.push_back({absl::StrJoin(names_, "."), "", /*is_list=*/true});
    const auto found = separators_.find(out_.back().name);
    separator_ = found == separators_.end() ? kListSeparator : found->second;
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
    if (error_.empty()) error_ = why;
    return false;
  }
  // An object or array in an array.
  bool Nested() {
    out_[lists_.back()].is_nested_list = true;
    ++skipped_;
    return true;
  }
  bool Value(const std::string& text) {
    if (names_.empty()) return Fail("is not a JSON object");
    if (skipped_ > 0) return true;
    if (lists_.empty()) {
      out_.push_back({absl::StrJoin(names_, "."), text});
      return true;
    }
    std::string& list = out_[lists_.back()].text;
    if (text.empty()) return true;
    if (absl::StrContains(text, separator_)) {
      error_ = absl::StrCat("the list '", out_[lists_.back()].name, "' has a value with '",
                            std::string(1, separator_), "', which separates values: replace it");
      return false;
    }
    if (!list.empty()) list.push_back(separator_);
    list += text;
    return true;
  }

  const ListSeparators& separators_;
  std::vector<JsonMember>& out_;
  std::string& error_;
  std::vector<std::string> names_;   // of the objects that are open
  std::vector<size_t> lists_;        // the member of the array that is open; at most one
  size_t skipped_ = 0;               // objects and arrays that are open in it
  char separator_ = kListSeparator;  // of its values
  bool started_ = false;
};

// The text with null for NaN and infinite numbers, which Python writes though JSON has none.
std::string WithoutNan(absl::string_view object) {
  std::string text;
  bool quoted = false;
  for (size_t i = 0; i < object.size();) {
    if (!quoted) {
      const absl::string_view rest = object.substr(i);
      size_t size = 0;
      for (const absl::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (absl::StartsWith(rest, word)) size = word.size();
      }
      if (size > 0) text += "null";
      i += size;
      if (size > 0) continue;
    }
    if (quoted && object[i] == '\\' && i + 1 < object.size())
      text.push_back(object[i++]);
    else if (object[i] == '"')
      quoted = !quoted;
    text.push_back(object[i++]);
  }
  return text;
}

}  // namespace

absl::Status ReadMembers(absl::string_view object, const ListSeparators& separators,
                         std::vector<JsonMember>* members) {
  members->clear();
  if (JsonDepth(std::string(object)) > kMaxJsonDepth) {
    return absl::DataLossError("nests too deeply");
  }
  std::string error;
  MemberReader reader(separators, members, &error);
  if (nlohmann::json::sax_parse(object.begin(), object.end(), &reader)) return absl::OkStatus();
  if (const std::string plain = WithoutNan(object); plain != object) {
    return ReadMembers(plain, separators, members);
  }
  return absl::DataLossError(error.empty() ? "is not a JSON object" : error);
}

}  // namespace cistern
