#include "worker/data/recipe/json_members.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/json_depth.h"

namespace cistern::data {
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
    if (skipped_ == 0) names_.back() = name;
    return true;
  }
  bool start_object(size_t) override {
    if (skipped_ > 0) return Nested();
    if (!lists_.empty()) {
      ++objects_in_list_;
      names_.emplace_back();
      return true;
    }
    if (started_ && names_.empty()) return Fail("holds more than one object");
    started_ = true;
    names_.emplace_back();
    return true;
  }
  bool end_object() override {
    if (skipped_ > 0) return --skipped_, true;
    names_.pop_back();
    if (!lists_.empty()) {
      --objects_in_list_;
      has_objects_ = true;
    }
    return true;
  }
  bool start_array(size_t) override {
    if (names_.empty()) return Fail("is an array");
    if (!lists_.empty()) return Nested();
    lists_.push_back(out_.size());
    has_objects_ = false;
    out_.push_back({absl::StrJoin(names_, "."), "", /*is_list=*/true});
    return true;
  }
  bool end_array() override {
    if (skipped_ > 0) return --skipped_, true;
    JsonMember& list = out_[lists_.back()];
    if (has_objects_ && list.text.empty() && !list.is_nested_list) {  // their members are in place
      out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(lists_.back()));
    } else if (has_objects_) {
      list.is_nested_list = true;
    }
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
  // The list that a value of the open array belongs to: the array, or the member of its objects.
  JsonMember& OpenList() {
    if (objects_in_list_ == 0) return out_[lists_.back()];
    const std::string name = absl::StrJoin(names_, ".");
    for (size_t i = lists_.back() + 1; i < out_.size(); ++i) {
      if (out_[i].name == name) return out_[i];
    }
    return out_.emplace_back(JsonMember{name, "", /*is_list=*/true});
  }
  // An array in an array, or what is in it.
  bool Nested() {
    if (skipped_ == 0) OpenList().is_nested_list = true;
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
    JsonMember& list = OpenList();
    if (text.empty()) return true;
    const char separator = SeparatorOf(separators_, list.name);
    if (absl::StrContains(text, separator)) {
      error_ = absl::StrCat("the list '", list.name, "' has a value with '",
                            std::string(1, separator), "', which separates values: replace it");
      return false;
    }
    if (!list.text.empty()) list.text.push_back(separator);
    list.text += text;
    return true;
  }

  const ListSeparators& separators_;
  std::vector<JsonMember>& out_;
  std::string& error_;
  std::vector<std::string> names_;  // of the objects that are open
  std::vector<size_t> lists_;       // the member of the array that is open; at most one
  size_t objects_in_list_ = 0;      // that are open in it
  bool has_objects_ = false;        // it
  size_t skipped_ = 0;              // arrays in it that are open, and what is open in them
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

uint64_t ShapeOf(absl::string_view object) {
  uint64_t shape = 0;
  for (size_t i = 0; i < object.size(); ++i) {
    const char c = object[i];
    if (c == '{' || c == '}' || c == '[' || c == ']') {
      shape = MixKey(shape ^ static_cast<unsigned char>(c));
    }
    if (c != '"') continue;
    const size_t begin = ++i;
    while (i < object.size() && object[i] != '"') i += object[i] == '\\' ? 2 : 1;
    if (i >= object.size()) break;
    size_t next = i + 1;
    while (next < object.size() && absl::ascii_isspace(static_cast<unsigned char>(object[next]))) {
      ++next;
    }
    if (next == object.size() || object[next] != ':') continue;  // a value
    shape = MixKey(shape ^ HashBytes(object.data() + begin, i - begin));
  }
  return shape;
}

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

}  // namespace cistern::data
