#include "worker/data/prepare/row_marks.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/shown_text.h"
#include "worker/data/prepare/column_name.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

const std::set<std::string>& TrainWords() {
  static const auto* const words = new std::set<std::string>{"train", "training", "trn", "tr"};
  return *words;
}

const std::set<std::string>& OtherPartWords() {
  static const auto* const words = new std::set<std::string>{
      "test",     "testing",  "tst",      "te",       "valid",      "validation",
      "validate", "val",      "dev",      "eval",     "evaluation", "holdout",
      "hold out", "held out", "hold_out", "held_out", "oot",        "out_of_time",
      "public",   "private",  "unused",   "predict",  "scoring",    "calibration"};
  return *words;
}

// "Train", "train_1", "TEST" and "test-set" are train and test.
std::string PartWordOf(const std::string& text) {
  std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  for (const char* const end : {"_set", "-set", " set", "set", "_data"}) {
    if (absl::EndsWith(word, end)) word.resize(word.size() - absl::string_view(end).size());
  }
  const size_t last = word.find_last_not_of("0123456789_- ");
  word.resize(last == std::string::npos ? 0 : last + 1);
  return word;
}

bool AreParts(const ColumnProfile& column) {
  size_t train = 0, others = 0;
  for (const auto& [text, count] : column.values) {
    const std::string word = PartWordOf(text);
    const bool is_other = OtherPartWords().count(word) > 0;
    if (TrainWords().count(word) == 0 && !is_other) return false;
    (is_other ? others : train) += 1;
  }
  return train > 0 && others > 0;
}

std::string JoinedWords(const std::string& name) {
  return absl::StrJoin(WordsOf(name), "");
}

bool IsFlag(const ColumnProfile& column) {
  return column.values.size() == 2 &&
         std::all_of(column.values.begin(), column.values.end(), [](const auto& value) {
           const std::string meaning = TruthMeaning(value.first);
           return meaning == "0" || meaning == "1";
         });
}

bool HasPartName(const ColumnProfile& column) {
  static const auto* const kFlags = new std::set<std::string>{
      "train",     "istrain", "istraining", "intrain", "trainflag", "traintest",
      "istest",    "intest",  "testflag",   "isvalid", "isval",     "isvalidation",
      "isholdout", "holdout", "isdev",      "iseval",  "validflag", "isoot"};
  static const auto* const kSplits = new std::set<std::string>{
      "split",        "splits",     "datasplit",    "splitid", "traintest", "traintestsplit",
      "trainvaltest", "trainvalid", "datasetsplit", "kfold",   "cvfold"};
  const std::string name = JoinedWords(column.name);
  if (kFlags->count(name) > 0 && IsFlag(column)) return true;
  const bool are_few = !column.values.empty();  // ColumnProfile::kFewValues
  if (kSplits->count(name) > 0) return are_few;
  return column.type == ColumnType::kInteger && are_few &&
         HasWord(column.name, {"fold", "folds", "kfold"});
}

}  // namespace

std::string PartsNoteOf(const ColumnProfile& column) {
  if (column.values.size() < 2 || (!AreParts(column) && !HasPartName(column))) return "";
  constexpr size_t kShown = 4;
  std::vector<std::string> parts;
  for (const auto& [text, count] : column.values) {
    if (parts.size() == kShown) {
      parts.push_back("...");
      break;
    }
    parts.push_back(absl::StrCat(ShownText(text, 20), ": ", count));
  }
  return absl::StrCat("says to which part a row belongs (", absl::StrJoin(parts, ", "),
                      "); all of them are trained: to keep parts apart, write a file for each; if "
                      "it is a feature, name it as sparse");
}

bool NumbersRows(const ColumnProfile& column, uint64_t rows) {
  static const auto* const kNames = new std::set<std::string>{
      "index",  "idx",        "row",          "rownum", "rownumber", "rowid", "rowno",   "rowindex",
      "rowidx", "linenumber", "recordnumber", "lineno", "sno",       "srno",  "serialno"};
  constexpr uint64_t kFewest = 50, kMostOfEach = 20;
  constexpr double kMinFill = 0.9;
  if (column.type != ColumnType::kInteger || column.missing > 0 || column.min < 0) return false;
  const bool has_name = absl::StartsWithIgnoreCase(column.name, "Unnamed: ") ||
                        kNames->count(JoinedWords(column.name)) > 0;
  if (!has_name || column.distinct <= kFewest || rows == column.distinct) return false;
  if (rows > kMostOfEach * column.distinct) return false;
  return static_cast<double>(column.distinct) >= kMinFill * (column.max - column.min + 1);
}

}  // namespace cistern::data
