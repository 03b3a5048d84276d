#include "worker/data/format/prediction_lines.h"

#include "absl/strings/str_format.h"

namespace cistern::data {

void AppendPredictionLines(absl::Span<const float> labels, absl::Span<const float> predictions,
                           size_t label_dim, std::string* text) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    const char end = (i + 1) % label_dim == 0 ? '\n' : '\t';
    absl::StrAppendFormat(text, "%g\t%.9g%c", labels[i], predictions[i], end);
  }
}

}  // namespace cistern::data
