// The formats of text that becomes a table of named columns: one entry each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"

namespace cistern::data {

class FeatureLine;         // feature_line.h
enum class FeatureValues;  // feature_line.h
class TextTable;           // text_table.h
struct TextOptions;        // text_table.h

// The plan of a stopped `cistern data pack` holds the number: none changes.
enum class TextFormat { kCsv, kTsv, kLibsvm, kCriteo, kLibffm, kVw };

// All that the other parts know of a format.
struct TextFormatEntry {
  TextFormat format;
  const char* word;         // in options, recipes and messages
  const char* extensions;   // of its files, with spaces between them
  char delimiter;           // unless an option names one, which lines of features do not have
  bool quotes = false;      // fields can be in double quotes (RFC 4180)
  bool is_default = false;  // nobody names it: a file may be JSON Lines, or TSV by its extension
  bool packs = true;        // `cistern data pack` reads it

  // The columns of every file, as ExpandColumns reads them, with commas between them; "": the
  // header line or an option names them, or they follow from the features.
  const char* columns = "";
  size_t log1p = 0;  // dense features among them, after the label; their transform is log1p

  // Of a feature, "index:value" or "field:index:value"; 0: lines hold fields, or their features are
  // no such tokens.
  int colons = 0;
  // The place of a feature in its line is its column, unless all share one; false: its field is,
  // and has several.
  bool by_position = false;
  bool names = false;   // features are names, whose keys are hashes, not numbers
  char comment = '\0';  // begins one, up to the end of a line of features; '\0': there is none

  uint64_t recipe_format = 1;  // the first format of recipe.json that has the word

  // Opens a file; ignores the options that do not apply to the format.
  absl::StatusOr<std::unique_ptr<TextTable>> (*open)(const std::string& path,
                                                     const TextOptions& options);
  // Lines of features that come without a file. columns: of the table, the label first.
  std::unique_ptr<FeatureLine> (*features)(FeatureValues values,
                                           const std::vector<std::string>& columns,
                                           bool single_slot) = nullptr;

  bool has_features() const { return features != nullptr; }
  // Whether neither a header line nor an option names the columns, and the first is "label".
  bool has_own_columns() const { return has_features() || *columns != '\0'; }
};

// All formats, in the order of the help.
absl::Span<const TextFormatEntry> TextFormats();
const TextFormatEntry& EntryOf(TextFormat format);
// The format of features that begin with a digit and have equally many colons, as "7:1 9:0.5" and
// "1:7:1 2:9:1"; null: they are of none.
const TextFormatEntry* FindFeatureFormat(absl::Span<const absl::string_view> features);

// The words of all formats, or of those that `cistern data pack` reads.
std::vector<std::pair<const char*, TextFormat>> TextFormatWords(bool packed = false);

}  // namespace cistern::data
