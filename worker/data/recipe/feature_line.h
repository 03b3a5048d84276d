// Lines of libsvm and libffm, "label index:value ..." and "label field:index:value ...", as the
// fields of a table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {

class LineReader;  // worker/data/format/line_reader.h

// What becomes of the value in "index:value".
enum class FeatureValues {
  kOnes,         // it must be 1
  kOnesOfModel,  // it must be 1, because it was so in the data that the recipe was made of
  kIgnored,      // any number; 0 drops the index
  kWeights,      // the field keeps "index:value", from which the recipe takes the weight of the key
};

// weights: they are those of the keys. any_value: they need not be 1.
FeatureValues FeatureValuesOf(bool weights, bool any_value);
// The use of values by a recipe, whose slots have weights or none (TextTable).
FeatureValues FeatureValuesOf(const Recipe& recipe);

// Splits a line at spaces and tabs. Comments of the format are left out.
std::vector<absl::string_view> LineTokens(absl::string_view line, TextFormat format);
// Reads the tokens of the next line that has any; false at the end. Errors as LineReader::Next.
absl::StatusOr<bool> NextTokens(LineReader& lines, TextFormat format,
                                std::vector<absl::string_view>* tokens);

// Turns the features of a line into fields.
//
// Threads: one at a time.
class FeatureLine {
 public:
  virtual ~FeatureLine() = default;

  // tokens: of a line, without its label. fields: is extended by one for each column but the label;
  // valid until the next call, and as long as the tokens.
  // kDataLoss: a token of another form, a value that is not allowed, or features without a column.
  virtual absl::Status Split(absl::Span<const absl::string_view> tokens,
                             std::vector<absl::string_view>* fields) = 0;
};

// slots: the features of a line; 0: of any number, which become one field with spaces between
// them.
std::unique_ptr<FeatureLine> NewLibsvmLine(FeatureValues values, size_t slots);
// columns: the label and the numbers of the fields. A field holds its features, separated by
// spaces.
std::unique_ptr<FeatureLine> NewLibffmLine(FeatureValues values,
                                           const std::vector<std::string>& columns);

// The field of a libffm token "field:index:value"; false if it is none.
bool LibffmField(absl::string_view token, absl::string_view* field);

}  // namespace cistern::data
