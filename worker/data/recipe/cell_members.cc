#include "worker/data/recipe/cell_members.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/xml_members.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxNameBytes = 64, kMaxPairs = 256;

// A dict of Python as JSON; what else Python prints stays, and is no JSON.
std::string PythonAsJson(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> words[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}, {"nan", "null"}};
  std::string json;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0) {
      const auto word = std::find_if(std::begin(words), std::end(words), [&](const auto& one) {
        return absl::StartsWith(text.substr(i), one.first);
      });
      if (word != std::end(words)) {
        json.append(word->second.data(), word->second.size());
        i += word->first.size() - 1;
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      json += quote != 0 ? '"' : c;
    } else if (c == quote) {
      quote = 0;
      json += '"';
    } else if (c == '\\' && i + 1 < text.size()) {
      if (text[++i] != '\'') json += '\\';
      json += text[i];
    } else {
      if (c == '"') json += '\\';
      json += c;
    }
  }
  return json;
}

bool IsMemberName(absl::string_view name) {
  const auto is_letter = [](char c) { return absl::ascii_isalpha(c) || c == '_'; };
  return !name.empty() && name.size() <= kMaxNameBytes && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter(c) || absl::ascii_isdigit(c) || c == '.' || c == '-';
         });
}

bool IsPlace(absl::string_view name) {
  return name.size() <= 4 && std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// The text of a value in the query of a URL.
std::string UnescapedQuery(absl::string_view text) {
  return PercentDecoded(absl::StrReplaceAll(text, {{"+", " "}}));
}

bool HasMember(const std::vector<JsonMember>& members, absl::string_view name) {
  return std::any_of(members.begin(), members.end(),
                     [&](const JsonMember& member) { return member.name == name; });
}

// separator: 0 for a single pair.
bool SplitPairs(absl::string_view text, char separator, std::vector<JsonMember>* members) {
  members->clear();
  const std::vector<absl::string_view> pairs =
      separator == 0 ? std::vector{text} : absl::StrSplit(text, separator, absl::SkipWhitespace());
  if (pairs.size() > kMaxPairs) return false;
  for (const absl::string_view pair : pairs) {
    const size_t arrow = pair.find("->");
    const size_t mark = std::min(pair.find_first_of("=:"), arrow);
    if (mark == absl::string_view::npos) return false;
    const absl::string_view name = WithoutQuotes(pair.substr(0, mark));
    const bool is_long = mark == arrow || absl::StartsWith(pair.substr(mark), "=>");
    const absl::string_view value = WithoutQuotes(pair.substr(mark + (is_long ? 2 : 1)));
    // 0:0.5 1:0.7 are places of a vector; 10:30 is a time.
    const bool is_place = pairs.size() > 1 && !name.empty() && IsPlace(name);
    if (!is_place && !IsMemberName(name)) return false;
    if (absl::StartsWith(value, "//")) return false;  // http://
    if (HasMember(*members, name)) return false;
    members->push_back(
        {std::string(name), separator == '&' ? UnescapedQuery(value) : std::string(value)});
  }
  return !members->empty();
}

bool ReadPairs(absl::string_view text, std::vector<JsonMember>* members) {
  absl::ConsumePrefix(&text, "?");
  if (text.find_first_of("=:>") == absl::string_view::npos) return false;
  for (const char separator : {'&', ';', '|', ',', '\n', '\t', ' '}) {
    if (absl::StrContains(text, separator) && SplitPairs(text, separator, members)) return true;
  }
  // As folders of Hive are named: user=u3/price=10.
  if (absl::StrContains(text, '/') && !absl::StrContains(text, ':') &&
      SplitPairs(text, '/', members)) {
    return true;
  }
  return text.find_first_of("&;|,") == absl::string_view::npos && SplitPairs(text, 0, members);
}

bool ReadBraces(absl::string_view field, std::vector<JsonMember>* members) {
  if (!absl::StartsWith(field, "{") || !absl::EndsWith(field, "}")) return false;
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace(field.substr(1));
  if (!absl::StrContains("\"'}", begin.substr(0, 1))) return false;  // {1,2} of PostgreSQL
  return ReadMembers(field, {}, members).ok() || ReadMembers(PythonAsJson(field), {}, members).ok();
}

// What Python and the JVM print of an object, with commas between its pairs: Context(user='u3',
// price=10.48), Context[user=u3], and the maps of Java, {user=u3, price=10.48}.
bool ReadPrinted(absl::string_view field, std::vector<JsonMember>* members) {
  const size_t open = field.find_first_of("([{");
  if (open == absl::string_view::npos || (open > 0 && !IsMemberName(field.substr(0, open)))) {
    return false;
  }
  if (open == 0 && field[0] != '{') return false;
  const char close = field[open] == '(' ? ')' : field[open] == '[' ? ']' : '}';
  const absl::string_view inside =
      absl::StripAsciiWhitespace(field.substr(open + 1, field.size() - open - 2));
  return field.back() == close && absl::StrContains(inside, '=') &&
         !absl::ascii_isdigit(static_cast<unsigned char>(inside[0])) &&
         SplitPairs(inside, absl::StrContains(inside, ',') ? ',' : '\0', members);
}

// A list of an object for each member: [{"user": "u3"}, {"price": 10.48}], or with the name as a
// value: [{"name": "user", "value": "u3"}].
bool ReadMemberList(absl::string_view text, std::vector<JsonMember>* members) {
  using Json = nlohmann::json;
  Json list = Json::parse(text.begin(), text.end(), nullptr, false);
  if (list.is_discarded()) list = Json::parse(PythonAsJson(text), nullptr, false);
  if (!list.is_array() || list.empty() || list.size() > kMaxPairs) return false;
  const auto under = [](const Json& one, std::initializer_list<const char*> keys) {
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const char* k) { return one.contains(k); });
    return key == keys.end() ? Json() : one[*key];
  };
  members->clear();
  for (const Json& one : list) {
    if (!one.is_object() || one.empty() || one.size() > 2) return false;
    const bool is_pair = one.size() == 2;
    const Json name = is_pair ? under(one, {"name", "key", "k", "field", "Name", "Key"})
                              : Json(one.begin().key());
    const Json value = is_pair ? under(one, {"value", "val", "v", "Value"}) : *one.begin();
    if (!name.is_string() || value.is_structured() || !IsMemberName(name.get<std::string>()) ||
        HasMember(*members, name.get<std::string>())) {
      return false;
    }
    members->push_back({name.get<std::string>(), value.is_null()     ? ""
                                                 : value.is_string() ? value.get<std::string>()
                                                 : value.is_boolean()
                                                     ? (value.get<bool>() ? "1" : "0")
                                                     : value.dump()});
  }
  return true;
}

// The text of a JSON string, which is JSON that was written twice; empty: it is none.
std::string UnquotedJson(absl::string_view field) {
  const auto json = nlohmann::json::parse(field.begin(), field.end(), nullptr, false);
  return json.is_string() ? json.get<std::string>() : "";
}

}  // namespace

bool IsPairs(absl::string_view field) {
  field = absl::StripLeadingAsciiWhitespace(field);
  absl::ConsumePrefix(&field, "?");
  absl::ConsumePrefix(&field, "\"");
  return !field.empty() && (absl::ascii_isalnum(field.front()) || field.front() == '_');
}

std::string PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && absl::SimpleHexAtoi(text.substr(i + 1, 2), &code);
    decoded.push_back(escaped ? static_cast<char>(code) : text[i]);
    if (escaped) i += 2;
  }
  return decoded;
}

bool ReadCellMembers(absl::string_view field, std::vector<JsonMember>* members) {
  members->clear();
  field = absl::StripAsciiWhitespace(field);
  if (field.empty()) return false;
  if (IsPairs(field)) return ReadPrinted(field, members) || ReadPairs(field, members);
  if (field.front() == '<') return ReadXmlMembers(field, members);
  if (absl::StartsWith(field, "%7B") && absl::EndsWith(field, "%7D")) {
    return ReadBraces(UnescapedQuery(field), members);
  }
  if (absl::StartsWith(field, "[") &&
      absl::StartsWith(absl::StripLeadingAsciiWhitespace(field.substr(1)), "{")) {
    return ReadMemberList(field, members);
  }
  if (absl::StartsWith(field, "\"{")) return ReadBraces(UnquotedJson(field), members);
  return ReadBraces(field, members) || ReadPrinted(field, members);
}

}  // namespace cistern::data
