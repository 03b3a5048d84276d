// The accessor `embedding`: weights and the state of their update rule.
//
//   w[dim]  state[RuleStateFloats(rule, dim)]  last_step, if updates are deferred
//   and a count, if rows count how often they occur (CountsSightings)
//
// A row exists as a whole from its first update on, and only training changes it. With
// TableBounds.admit_after it has its count first, and w and state once the count is high enough:
//
//   count  w[dim]  state[..]
#pragma once

#include "common/value/accessor.h"

namespace cistern {

class EmbeddingAccessor : public Accessor {
 public:
  v1::TableSpec::Accessor kind() const override { return v1::TableSpec::EMBEDDING; }
  absl::string_view name() const override { return "embedding"; }
  ValueShape ShapeOf(const v1::TableSpec& spec, const RuleParams& rule) const override;
  std::unique_ptr<OldRows> MakeOldRows(const ValueLayout& layout) const override;
};

}  // namespace cistern
