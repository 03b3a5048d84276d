#include "worker/data/recipe/label_classes.h"

#include "absl/strings/str_join.h"
#include "common/base/shown_text.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxShown = 40;  // bytes of a text in a message

std::string QuotedTexts(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, ", ", [](std::string* out, const std::string& text) {
    absl::StrAppend(out, "'", ShownText(text, kMaxShown), "'");
  });
}

}  // namespace

LabelClasses::LabelClasses(const Recipe::Label& label) : label_(label) {
  const bool both = !label.negative.empty();
  truth_ = TruthOf(label.positive) == '1' && (!both || TruthOf(label.negative) == '0');
  for (const float value : {1.0f, 0.0f}) {
    for (const std::string& text : value > 0 ? label.positive : label.negative) {
      texts_.emplace(text, value);
      const std::string meaning = truth_ ? TruthMeaning(text) : LabelMeaning(text);
      const auto [known, is_new] = meanings_.emplace(meaning, value);
      if (!is_new && known->second != value) meanings_.erase(known);  // only the texts differ
    }
  }
}

absl::StatusOr<float> LabelClasses::Of(absl::string_view text) const {
  const auto exact = texts_.find(text);
  if (exact != texts_.end()) return exact->second;
  const auto same = meanings_.find(truth_ ? TruthMeaning(text) : LabelMeaning(text));
  const std::string shown = ShownText(text, kMaxShown);
  if (!label_.negative.empty()) {
    if (same != meanings_.end()) return same->second;
    return absl::DataLossError(
        absl::StrCat("the label '", shown, "' is neither positive (", QuotedTexts(label_.positive),
                     ") nor negative (", QuotedTexts(label_.negative),
                     ") in the training data: write it as one of these, or remove the row"));
  }
  if (same == meanings_.end()) return 0.0f;
  return WithOptions(
      absl::DataLossError(
          absl::StrCat("the label '", shown,
                       "' means the same as a positive text of the recipe, which would count it as "
                       "negative: write it in the same way, or name it as positive, too")),
      {"positive"});
}

}  // namespace cistern::data
