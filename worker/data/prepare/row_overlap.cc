#include "worker/data/prepare/row_overlap.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"

namespace cistern::data {
namespace {

uint64_t HashOf(const std::vector<absl::string_view>& fields) {
  return HashBytes(absl::StrJoin(fields, absl::string_view("\0", 1)));
}

}  // namespace

void RowOverlap::AddTraining(const std::vector<absl::string_view>& fields) {
  if (training_ == kMaxRows) return;
  ++training_;
  rows_.insert(HashOf(fields));
}

void RowOverlap::AddEvaluation(const std::vector<absl::string_view>& fields) {
  ++evaluation_;
  both_ += rows_.contains(HashOf(fields)) ? 1 : 0;
}

std::string RowOverlap::Warning() const {
  constexpr double kMaxRepeated = 0.1;
  constexpr uint64_t kMinRows = 20;
  const uint64_t repeated = training_ - rows_.size();
  if (evaluation_ < kMinRows || 2 * both_ < evaluation_) return "";
  if (static_cast<double>(repeated) > kMaxRepeated * static_cast<double>(training_)) return "";
  return absl::StrFormat(
      "%d of %d evaluation rows are also training rows, so the AUC says how well the model "
      "remembers: evaluate on other rows",
      both_, evaluation_);
}

}  // namespace cistern::data
