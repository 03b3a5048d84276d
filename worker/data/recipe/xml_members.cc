#include "worker/data/recipe/xml_members.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxXmlMembers = 256, kMaxDepth = 16;

class XmlReader {
 public:
  explicit XmlReader(std::vector<JsonMember>* members) : members_(*members) {}

  bool Read(absl::string_view text) {
    while (!text.empty()) {
      const size_t open = std::min(text.find('<'), text.size());
      if (!AddText(text.substr(0, open))) return false;
      text.remove_prefix(open);
      if (text.empty()) break;
      const size_t close = text.find('>');
      if (close == absl::string_view::npos || !AddTag(text.substr(1, close - 1))) return false;
      text.remove_prefix(close + 1);
    }
    return elements_.empty() && !members_.empty();
  }

 private:
  struct Element {
    absl::string_view name, text;
    bool has_elements = false;
  };

  bool AddText(absl::string_view text) {
    text = absl::StripAsciiWhitespace(text);
    if (text.empty()) return true;
    if (elements_.empty() || elements_.back().has_elements) return false;
    elements_.back().text = text;
    return true;
  }

  bool AddTag(absl::string_view tag) {
    if (absl::StartsWith(tag, "?") || absl::StartsWith(tag, "!")) return elements_.empty();
    if (absl::ConsumePrefix(&tag, "/")) {
      if (elements_.empty() || elements_.back().name != tag) return false;
      const Element element = elements_.back();
      elements_.pop_back();
      return element.has_elements || Add(element.name, element.text);
    }
    if (elements_.empty() ? is_done_ : !elements_.back().text.empty()) return false;
    is_done_ = true;
    if (!elements_.empty()) elements_.back().has_elements = true;
    const bool is_empty = absl::ConsumeSuffix(&tag, "/");
    const size_t end = std::min(tag.find_first_of(" \t\n"), tag.size());
    const absl::string_view name = tag.substr(0, end), rest = tag.substr(end);
    if (!IsName(name) || !AddAttributes(rest)) return false;
    if (is_empty) return !absl::StripAsciiWhitespace(rest).empty() || Add(name, "");
    elements_.push_back({name, "", false});
    return elements_.size() <= kMaxDepth;
  }

  // name="value" and so on.
  bool AddAttributes(absl::string_view text) {
    for (text = absl::StripAsciiWhitespace(text); !text.empty();) {
      const size_t equals = text.find('=');
      if (equals == absl::string_view::npos || equals + 1 >= text.size()) return false;
      const absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, equals));
      text = absl::StripLeadingAsciiWhitespace(text.substr(equals + 1));
      if (text.empty() || (text[0] != '"' && text[0] != '\'')) return false;
      const size_t close = text.find(text[0], 1);
      if (close == absl::string_view::npos) return false;
      if (!IsName(name) || !Add(name, text.substr(1, close - 1))) return false;
      text = absl::StripLeadingAsciiWhitespace(text.substr(close + 1));
    }
    return true;
  }

  bool Add(absl::string_view name, absl::string_view text) {
    const bool is_new = std::none_of(members_.begin(), members_.end(),
                                     [&](const JsonMember& one) { return one.name == name; });
    members_.push_back(
        {std::string(name),
         absl::StrReplaceAll(
             text,
             {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})});
    return is_new && members_.size() <= kMaxXmlMembers;
  }

  static bool IsName(absl::string_view name) {
    return !name.empty() && absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
             return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == ':';
           });
  }

  std::vector<JsonMember>& members_;
  std::vector<Element> elements_;  // open ones, the innermost last
  bool is_done_ = false;           // whether the outermost element has begun
};

}  // namespace

bool ReadXmlMembers(absl::string_view text, std::vector<JsonMember>* members) {
  members->clear();
  text = absl::StripAsciiWhitespace(text);
  return absl::StartsWith(text, "<") && absl::EndsWith(text, ">") && XmlReader(members).Read(text);
}

}  // namespace cistern::data
