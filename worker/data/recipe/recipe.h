// The data recipe: how the text of a row becomes a sample.
//
// `cistern data convert` writes it beside the data set as recipe.json (docs/formats.md), with the
// vocabulary beside it. Run folders and serving folders carry a copy, so that whatever is predicted
// later is encoded as the training data was.
//
// The meaning of a recipe is everything that changes a sample: labels, dense columns, slots and how
// their text becomes numbers and keys. Its hash covers the meaning only. How the training text was
// laid out (delimiter, header, order and names of all columns) is recorded too, but data in another
// layout can have the same meaning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/data/recipe/number_form.h"
#include "worker/data/recipe/text_format.h"

namespace cistern::data {

// How a sparse field's text becomes a key.
enum class KeyMode {
  kAuto,    // in flags only: raw for libsvm, hash for the others
  kRaw,     // the text is the key: an integer of 0 or more
  kHash,    // XXH3 of "column=text", reduced to the key width; never the reserved key
  kSigned,  // the text is an integer x of either sign; the key is 2 x, or -2 x - 1 below 0
};

// What replaces a missing or rare value.
enum class StandIn {
  kNone,  // nothing: the slot gets no key
  kKey,   // one key per column; hashed keys only
};

enum class DenseTransform {
  kAuto,  // in flags only: log1p for Criteo, none for the others
  kNone,
  kLog1p,        // ln(1 + x), or ln(1) if x < 0; then as kStandardize, if Dense has constants
  kStandardize,  // (x - mean) / deviation, both of the training data
};

struct Recipe {
  // How the training text was laid out.
  struct Layout {
    TextFormat format = TextFormat::kCsv;
    char delimiter = ',';
    bool header = true;        // its first line names the columns
    bool single_slot = false;  // libsvm: all tokens of a line are values of one column
    bool any_value = false;    // libsvm, libffm: values other than 1 are accepted and ignored
    std::vector<std::string> columns;  // all of them, in order
  };
  struct Label {
    std::string column;
    std::optional<double> threshold;    // a label above it is 1, any other 0
    std::vector<std::string> positive;  // the texts that are 1, any other 0; empty: a number
    // With positive: the texts that are 0. Texts with the meaning of one of these (value_text.h)
    // are the same label, any other text is an error.
    std::vector<std::string> negative = {};
  };
  struct Dense {
    std::string column;
    DenseTransform transform = DenseTransform::kNone;
    double mean = 0, deviation = 1;  // kStandardize, kLog1p: of the logarithms
    double missing = 0;              // of an empty field; not transformed
    // Numbers beyond these bounds count as the bounds.
    std::optional<double> low = {}, high = {};
  };
  // How the text of a column becomes values.
  struct Source {
    std::string column;
    // A number x > 2 becomes the value "b" + floor(ln(x)^2), any other number floor(x).
    bool bucket = false;
    std::optional<char> separator = {};  // of a column that holds several values
    // A value that is an integer counts as its digits (IntegerCode): 1047.0 is 1047, true is 1.
    bool integer = false;
    // The field may be in brackets ([a, b], {a, b}, (a, b)), and values in quotes. Spaces around
    // values do not count.
    bool list = false;
    bool weights = false;  // a value ends with ":" and a weight, which is left out
                           // but for Slot::key_weights
  };
  struct Slot {
    std::string column;  // of a cross: its name (CrossName), which is that of no column
    bool bucket = false;
    std::optional<char> separator = {};
    // A cross of these columns, two to kMaxCrossed: every combination of their values is a value,
    // whose text is CrossText. It is missing if one of them is. Hashed keys only.
    std::vector<Source> cross = {};
    bool integer = false, list = false, weights = false;  // as in Source
    // The column under whose name values are hashed, so that a value has the same key, and the same
    // row of an embedding, in both; empty: this one. Hashed keys only, not of a cross.
    std::string shares = {};
    // The values have weights, which their keys keep (SampleShape::key_weights). That of a value is
    // the number after its last weight_mark (`weights` is true too), or the number at the same
    // place of the column weight_column, whose lists have the form of this column's. Not of a
    // cross.
    bool key_weights = false;
    std::string weight_column = {};
    char weight_mark = ':';  // or '=' or '(': a:0.5, a=0.5, a(0.5)
  };
  // How the numbers of a column are written that a dense feature or a bucket reads.
  struct Numbers {
    std::string column;
    NumberForm form;
  };

  Layout layout;
  std::vector<Label> labels;
  std::string weight;  // the column of the sample's weight; empty: every weight is 1
  std::vector<Dense> dense;
  std::vector<Slot> slots;
  std::vector<Numbers> numbers = {};        // of columns whose numbers are not plain
  bool trim = false;                        // spaces around a field do not count
  std::vector<std::string> missing_values;  // texts that count as empty
  StandIn missing = StandIn::kNone;
  KeyMode keys = KeyMode::kHash;
  int key_bits = 64;
  // Values that are not in the vocabulary are rare. Absent: there is none, and no value is rare.
  std::optional<uint64_t> vocabulary_xxh3;  // of its file
  StandIn rare = StandIn::kKey;

  // How the vocabulary came to be; no part of the meaning.
  struct History {
    uint64_t min_count = 0;  // a value needs so many occurrences; 0: not known
    // The hashes of the recipes that this one extends, oldest first: each later vocabulary holds
    // the earlier one, and nothing else differs.
    std::vector<uint64_t> extends = {};
  };
  History history;
};

// Columns of a cross.
inline constexpr size_t kMaxCrossed = 8;

// The name of the recipe's file, and that of its vocabulary in the same folder.
inline constexpr char kRecipeFile[] = "recipe.json";
inline constexpr char kVocabularyFile[] = "vocabulary.txt";

// The form of the numbers of a column; null: they are plain.
const NumberForm* NumberFormOf(const Recipe& recipe, const std::string& column);

// XXH3 of the meaning.
uint64_t HashOf(const Recipe& recipe);
// The hash as text, for messages and files: 16 hex digits.
std::string HashTextOf(const Recipe& recipe);

// The text of recipe.json.
std::string FormatRecipe(const Recipe& recipe);
// kDataLoss: not a recipe, a newer format, a field that is missing, unknown or out of range, or a
// text that was changed after it was written (its hash differs).
absl::StatusOr<Recipe> ParseRecipe(const std::string& text);

// The first difference in meaning: "dense[0] (age).transform is none, not log1p", where `mine` has
// the first value. Empty if there is none.
std::string RecipeDifference(const Recipe& mine, const Recipe& other);

// Whether `recipe` is `other`, or extends it: data of `other` then has the keys that `recipe` gives
// it, but for values that only the later vocabulary knows.
bool Extends(const Recipe& recipe, const Recipe& other);

// Whether a row of text without labels and weight is the same sample by both: their meaning, the
// order of the columns that are read, and the delimiter are equal.
bool ReadSameRows(const Recipe& a, const Recipe& b);

// Whether a logarithm is shifted and scaled.
bool HasLogMean(const Recipe::Dense& dense);

// Whether the keys of some slot have weights.
bool HasKeyWeights(const Recipe& recipe);

// The name of a cross: "user_x_item".
std::string CrossName(const std::vector<Recipe::Source>& sources);
// The text of a cross's value, which is hashed as that of a column: the length of each text, ":"
// and the text; ("7", "33") is "1:72:33". Different values have different texts.
std::string CrossText(const std::vector<absl::string_view>& values);

// The columns that a recipe reads, labels and weight included.
std::vector<std::string> ReadColumns(const Recipe& recipe);

// What separates the values of the columns that hold several, by column.
std::map<std::string, char> SeparatorsOf(const Recipe& recipe);

// The columns that a row without labels and weight needs, in the order of the layout: those of
// dense features, slots and crosses, each once.
std::vector<std::string> FeatureColumns(const Recipe& recipe);

// What separates the fields of a line: layout.delimiter, but a space in lines of features.
char DelimiterOf(const Recipe::Layout& layout);

}  // namespace cistern::data
