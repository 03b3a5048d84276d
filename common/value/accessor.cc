#include "common/value/accessor.h"

#include "common/value/row_lifecycle.h"

namespace cistern {

std::unique_ptr<RowLifecycle> Accessor::MakeLifecycle(const ValueLayout&, uint32_t) const {
  return nullptr;
}

const Accessor* FindAccessor(v1::TableSpec::Accessor kind, AccessorList accessors) {
  for (const Accessor* accessor : accessors) {
    if (accessor->kind() == kind) return accessor;
  }
  return nullptr;
}

const Accessor* FindAccessor(absl::string_view name, AccessorList accessors) {
  for (const Accessor* accessor : accessors) {
    if (accessor->name() == name) return accessor;
  }
  return nullptr;
}

absl::string_view AccessorName(const v1::TableSpec& spec) {
  const Accessor* accessor = FindAccessor(spec.accessor());
  return accessor == nullptr ? "unknown" : accessor->name();
}

bool HasStatistics(const v1::TableSpec& spec) {
  const Accessor* accessor = FindAccessor(spec.accessor());
  return accessor != nullptr && accessor->has_statistics();
}

absl::Status CheckDay(const v1::TableSpec& spec, uint32_t day) {
  const Accessor* accessor = FindAccessor(spec.accessor());
  if (accessor != nullptr) return accessor->CheckDay(spec, day);
  return absl::InvalidArgumentError(absl::StrCat("table '", spec.name(), "': unknown accessor"));
}

}  // namespace cistern
