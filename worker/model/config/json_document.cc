#include "worker/model/config/json_document.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/json_depth.h"
#include "common/base/nearest_name.h"

namespace cistern::model {
namespace {

// Finds keys that occur twice in one object while the library builds the tree.
class DuplicateKeys {
 public:
  bool operator()(Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) seen_.emplace_back();
    if (event == Json::parse_event_t::object_end) seen_.pop_back();
    if (event == Json::parse_event_t::key && first_.empty() &&
        !seen_.back().insert(parsed.get<std::string>()).second) {
      first_ = parsed.get<std::string>();
    }
    return true;
  }
  const std::string& first() const { return first_; }

 private:
  std::vector<std::set<std::string>> seen_;
  std::string first_;
};

bool IsUtf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::exception&) {
    return false;
  }
}

// A number as people write it (.5, 5., +5) as JSON has it; other text may come out changed, but as
// no number.
std::string CompletedNumber(absl::string_view text) {
  const auto begins_with_digit = [](absl::string_view at) {
    return !at.empty() && absl::ascii_isdigit(at.front());
  };
  const std::string sign = absl::ConsumePrefix(&text, "-") ? "-" : "";
  if (sign.empty()) absl::ConsumePrefix(&text, "+");
  const size_t point = std::min(text.find('.'), text.size());
  const absl::string_view whole = text.substr(0, point);
  absl::string_view rest = text.substr(point);
  if (!begins_with_digit(whole) && !begins_with_digit(rest.substr(rest.empty() ? 0 : 1))) return "";
  if (!absl::ConsumePrefix(&rest, ".")) return absl::StrCat(sign, whole);
  return absl::StrCat(sign, whole.empty() ? "0" : whole, ".", begins_with_digit(rest) ? "" : "0",
                      rest);
}

// "[json.exception.parse_error.101] parse error at line 2, column 3: X" becomes
// "line 2, column 3: X".
std::string CleanMessage(std::string message) {
  // The bytes that the parser quotes may not be valid UTF-8.
  if (!IsUtf8(message)) message = message.substr(0, message.find("; last read"));
  const size_t at = message.find("line ");
  if (at != std::string::npos) return message.substr(at);
  const size_t bracket = message.find("] ");
  return bracket == std::string::npos ? message : message.substr(bracket + 2);
}

// A hint for common mistakes that JSON does not allow.
std::string SyntaxHint(const std::string& text) {
  const auto has = [&](const char* words) { return absl::StrContains(text, words); };
  if (text.empty()) return " (the file is empty)";
  if (text.find('\0') != std::string::npos)
    return " (the file looks like UTF-16: save it as UTF-8)";
  if (has("//") || has("/*") || text[0] == '#')
    return " (JSON has no comments; write a member \"comment\": \"...\")";
  if (has("NaN") || has("Infinity")) return " (JSON has no NaN or Infinity)";
  return "";
}

// The element of an array that `key` addresses, or nullptr.
Json* FindElement(Json& array, const std::string& key) {
  size_t index = 0;
  if (absl::SimpleAtoi(key, &index)) return index < array.size() ? &array[index] : nullptr;
  for (Json& element : array) {
    if (!element.is_object()) continue;
    for (const char* field : {"name", "top"}) {
      const auto it = element.find(field);
      if (it != element.end() && it->is_string() && it->get<std::string>() == key) return &element;
    }
  }
  return nullptr;
}

std::vector<std::string> ElementNames(const Json& array) {
  std::vector<std::string> names;
  for (const Json& element : array) {
    if (!element.is_object()) continue;
    const auto it = element.find("name");
    if (it != element.end() && it->is_string()) names.push_back(it->get<std::string>());
  }
  return names;
}

std::string ValueText(const Json& value) {
  if (!value.is_number_float()) return value.dump();
  const double x = value.get<double>();
  constexpr double kExact = 9007199254740992;  // 2^53
  const bool whole = std::floor(x) == x && std::abs(x) < kExact;
  return whole ? absl::StrCat(static_cast<int64_t>(x)) : value.dump();
}

void Flatten(const Json& value, const std::string& path,
             std::vector<std::pair<std::string, std::string>>* out) {
  if (value.is_object()) {
    for (const auto& item : value.items()) {
      Flatten(item.value(), absl::StrCat(path, path.empty() ? "" : ".", item.key()), out);
    }
  } else if (value.is_array() && !value.empty() && value[0].is_object()) {
    for (size_t i = 0; i < value.size(); ++i) {
      Flatten(value[i], absl::StrCat(path, "[", i, "]"), out);
    }
  } else {
    out->emplace_back(path, ValueText(value));
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> FlattenJson(const Json& root) {
  std::vector<std::pair<std::string, std::string>> values;
  Flatten(root, "", &values);
  return values;
}

absl::StatusOr<Json> ParseJson(const std::string& text) {
  const size_t depth = JsonDepth(text);
  if (depth > kMaxJsonDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("is nested ", depth, " levels deep; the maximum is ", kMaxJsonDepth));
  }
  DuplicateKeys duplicates;
  try {
    Json json = Json::parse(text, [&duplicates](int, Json::parse_event_t event, Json& parsed) {
      return duplicates(event, parsed);
    });
    if (!duplicates.first().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("key '", duplicates.first(), "' occurs twice in one object"));
    }
    return json;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(CleanMessage(error.what()) + SyntaxHint(text));
  }
}

void RemoveComments(Json* value) {
  if (value->is_object()) {
    const auto comment = value->find("comment");
    if (comment != value->end() && comment->is_string()) value->erase(comment);
  }
  if (!value->is_structured()) return;
  for (Json& inner : *value) RemoveComments(&inner);
}

absl::Status ApplyOverride(const std::string& override_text, Json* root) {
  const std::string context = absl::StrCat("override '", override_text, "'");
  if (!IsUtf8(override_text)) {
    return absl::InvalidArgumentError(absl::StrCat(context, ": is not UTF-8; write it in UTF-8"));
  }
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, ": write path=value, as in solver.batchsize=4096"));
  }
  Json* at = root;
  std::string done;
  for (const std::string& key :
       std::vector<std::string>(absl::StrSplit(override_text.substr(0, equals), '.'))) {
    if (at->is_array()) {
      Json* element = FindElement(*at, key);
      if (element == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(context, ": ", done, " has no element '",
                                                       key, "'", Suggest(key, ElementNames(*at))));
      }
      at = element;
    } else if (at->is_object() || at->is_null()) {
      at = &(*at)[key];
    } else {
      return absl::InvalidArgumentError(absl::StrCat(context, ": ", done, " is ", DescribeJson(*at),
                                                     ", which holds no '", key, "'"));
    }
    absl::StrAppend(&done, done.empty() ? "" : ".", key);
  }
  const std::string text = override_text.substr(equals + 1);
  if (JsonDepth(text) > kMaxJsonDepth) {
    return absl::InvalidArgumentError(absl::StrCat("override '", override_text.substr(0, equals),
                                                   "': is nested more than ", kMaxJsonDepth,
                                                   " levels deep"));
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    value = Json::parse(CompletedNumber(text), nullptr, /*allow_exceptions=*/false);
    if (!value.is_number()) value = text;
  }
  *at = std::move(value);
  return absl::OkStatus();
}

std::string DescribeJson(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return absl::StrCat("the string ", value.dump());
    case Json::value_t::boolean:
      return absl::StrCat("the boolean ", value.dump());
    default:
      return absl::StrCat("the number ", value.dump());
  }
}

}  // namespace cistern::model
