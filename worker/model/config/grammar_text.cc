// Text from the grammar: kinds of values for messages, tables for docs/configuration.md.
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "worker/model/config/grammar.h"

namespace cistern::model {
namespace {

// Formats a number; whole numbers keep all their digits.
std::string Digits(double x) {
  return std::floor(x) == x && std::fabs(x) < 1e15 ? absl::StrCat(static_cast<int64_t>(x))
                                                   : absl::StrCat(x);
}

// " >= 1 and < 2". A maximum that is only the size of the number type is left out.
std::string DescribeBounds(const KeyGrammar& key) {
  std::string text;
  absl::StrAppend(&text, key.above_min ? " > " : " >= ", Digits(key.min));
  if (key.below_max) absl::StrAppend(&text, " and < ", Digits(key.max));
  if (!key.below_max && key.max < 4294967295.0) absl::StrAppend(&text, " and <= ", Digits(key.max));
  return text;
}

std::string DescribeFallback(const KeyGrammar& key) {
  if (key.required) return "required";
  if (!key.fallback.empty()) return absl::StrCat("`", key.fallback, "`");
  return key.otherwise.empty() ? "-" : key.otherwise;
}

void AppendTable(const ObjectGrammar& object, std::string* out, std::set<std::string>* done) {
  if (!done->insert(object.title).second) return;
  absl::StrAppend(out, "\n### ", object.title, "\n\n| key | type | default | meaning |\n",
                  "|---|---|---|---|\n");
  for (const KeyGrammar& key : object.keys) {
    std::string meaning = key.meaning;
    if (!key.note.empty()) absl::StrAppend(&meaning, " (", key.note, ")");
    absl::StrAppend(
        out, "| `", key.name, "` | ", absl::StrReplaceAll(DescribeKind(key), {{"|", "\\|"}}), " | ",
        DescribeFallback(key), " | ", absl::StrReplaceAll(meaning, {{"|", "\\|"}}), " |\n");
  }
  for (const KeyGrammar& key : object.keys) {
    if (key.object != nullptr) AppendTable(*key.object, out, done);
  }
}

}  // namespace

std::string DescribeKind(const KeyGrammar& key) {
  switch (key.kind) {
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kCount:
      return absl::StrCat("integer", DescribeBounds(key));
    case JsonKind::kNumber:
      return absl::StrCat("number", DescribeBounds(key));
    case JsonKind::kString:
      return "string";
    case JsonKind::kWord:
      return absl::StrJoin(key.words, " | ");
    case JsonKind::kStrings:
      return "string or array of strings";
    case JsonKind::kBools:
      return "array of true or false";
    case JsonKind::kNumbers:
      return absl::StrCat("array of numbers", DescribeBounds(key));
    case JsonKind::kCounts:
      return absl::StrCat("array of integers", DescribeBounds(key));
    case JsonKind::kCountOrCounts:
      return absl::StrCat("integer or array of integers", DescribeBounds(key));
    case JsonKind::kRanges:
      return "array of [lo, hi] with lo < hi";
    case JsonKind::kObject:
      return "object";
    case JsonKind::kObjects:
      return "array of objects";
    case JsonKind::kNamedObjects:
      return "object of objects by name";
    case JsonKind::kLayers:
      return "array of layers";
    case JsonKind::kBoolOrCount:
      return absl::StrCat("true, false or integer", DescribeBounds(key));
    case JsonKind::kAnything:
      return "anything";
  }
  return "";
}

std::string GrammarMarkdown(const std::vector<LayerGrammar>& layers) {
  std::string out;
  std::set<std::string> done;
  absl::StrAppend(&out, "## Objects\n");
  AppendTable(FileGrammar(), &out, &done);
  absl::StrAppend(&out, "\n## Layers\n");
  for (const LayerGrammar& layer : layers) AppendTable(layer.object, &out, &done);
  return out;
}

}  // namespace cistern::model
