// The classes of a label that is text.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {

// Threads: any.
class LabelClasses {
 public:
  explicit LabelClasses(const Recipe::Label& label);

  // 1 for a positive text, 0 for a negative one. kDataLoss: neither, by a label that lists both
  // classes; or a text that means the same as a positive one but is not listed.
  absl::StatusOr<float> Of(absl::string_view text) const;

 private:
  Recipe::Label label_;
  bool truth_ = false;  // the classes are true and false
  absl::flat_hash_map<std::string, float> texts_, meanings_;
};

}  // namespace cistern::data
