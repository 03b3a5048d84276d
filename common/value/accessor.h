// An accessor: the rules for a table's values. Every accessor is one entry of common/value/accessor
// and one line of its list (accessor_list.cc).
//
// An accessor says once per table what its values look like (ValueShape). From that description,
// without a call per row: rows are created, pulled, stored, saved, loaded, checked, converted and
// digested. Only what depends on the meaning of a row's statistics is a virtual call: which saves
// include it, how it decays, when it is removed (RowLifecycle). A worker updates the rows of an
// accessor with the embedding layer of that accessor (worker/model/layer/embedding_layers.cc), a
// whole batch per call.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/value/update_rule.h"
#include "common/value/value_shape.h"
#include "proto/schema.pb.h"

namespace cistern {

class OldRows;       // old_rows.h
class RowLifecycle;  // row_lifecycle.h
class ValueLayout;

// Threads: immutable; any thread. Accessors live as long as the process.
class Accessor {
 public:
  virtual ~Accessor() = default;

  // Its number in a schema, and its name in model files, exports and listings.
  virtual v1::TableSpec::Accessor kind() const = 0;
  virtual absl::string_view name() const = 0;

  // OK if this accessor's own constants in a spec are valid; else kInvalidArgument, which names the
  // constant. Asked for every table, also for those of other accessors, which leave them unset.
  virtual absl::Status CheckConstants(const v1::TableSpec& spec) const { return absl::OkStatus(); }
  // The smallest dim of a table.
  virtual uint32_t min_dim() const { return 1; }
  // The values of a valid table.
  virtual ValueShape ShapeOf(const v1::TableSpec& spec, const RuleParams& rule) const = 0;

  // Whether updates of rows that a step does not touch may be deferred (deferred_updates.h).
  virtual bool defers_updates() const { return true; }
  // Whether rows keep statistics of shows and clicks. If so, saves may choose rows, rows decay, and
  // only a layer that counts shows and clicks can train them.
  virtual bool has_statistics() const { return false; }
  // The lifecycle of the rows of a table; null without statistics: every save includes every row,
  // and no row decays. layout: of this accessor; outlives the lifecycle. day: today's number,
  // validated by CheckDay.
  virtual std::unique_ptr<RowLifecycle> MakeLifecycle(const ValueLayout& layout,
                                                      uint32_t day) const;
  // OK if `day` can be today's number for this table; else kInvalidArgument, which names the fix.
  virtual absl::Status CheckDay(const v1::TableSpec& spec, uint32_t day) const {
    return absl::OkStatus();
  }

  // The forms that rows of other systems and versions have (LegacyRows). layout: of this accessor;
  // outlives the result.
  virtual std::unique_ptr<OldRows> MakeOldRows(const ValueLayout& layout) const = 0;
};

using AccessorList = absl::Span<const Accessor* const>;

// All accessors of the library (accessor/accessor_list.cc).
AccessorList Accessors();

// The accessor with this number or name; null if the list has none.
const Accessor* FindAccessor(v1::TableSpec::Accessor kind, AccessorList accessors = Accessors());
const Accessor* FindAccessor(absl::string_view name, AccessorList accessors = Accessors());

// Of a table's accessor; "unknown", false or an error if the spec has none.
absl::string_view AccessorName(const v1::TableSpec& spec);
bool HasStatistics(const v1::TableSpec& spec);
absl::Status CheckDay(const v1::TableSpec& spec, uint32_t day);

}  // namespace cistern
