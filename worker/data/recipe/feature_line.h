// Lines of libsvm, libffm and Vowpal Wabbit, "label index:value ...", "label field:index:value ..."
// and "label |namespace feature:value ...", as the fields of a table.
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

// Whether the first token is a label: no feature, and no namespace of Vowpal Wabbit.
bool HasLabel(absl::Span<const absl::string_view> tokens);

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

// columns: the label and the namespaces. A field holds the features of its namespace, separated by
// spaces; a feature without a value has the value 1.
std::unique_ptr<FeatureLine> NewVwLine(FeatureValues values,
                                       const std::vector<std::string>& columns);

// A feature of Vowpal Wabbit, "name" or "name:value", and its namespace: kNoNamespace, if it has
// none.
inline constexpr char kNoNamespace[] = "features";
struct VwFeature {
  absl::string_view space, feature;
};
// The features of a line, from its tokens without the label. A tag ('tag) is skipped. kDataLoss: an
// importance other than 1, an initial prediction, or a namespace with a factor, which are not used.
absl::StatusOr<std::vector<VwFeature>> VwFeatures(absl::Span<const absl::string_view> tokens);

// The field of a libffm token "field:index:value"; false if it is none.
bool LibffmField(absl::string_view token, absl::string_view* field);

}  // namespace cistern::data
