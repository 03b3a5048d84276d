// The days on which passes were committed, for tables that expire rows by day
// (v1.TableBounds.expire_days).
//
// A row knows its last pass and no day. v1.PassDays has the first pass of each day, so "the last
// pass was so many days ago" becomes "the last pass is before pass p", for all rows at once. The
// writer of a fleet reads its clock once a pass, the commit carries the list, and the manifest
// keeps it. No server reads a clock, so all of them remove the same rows, and so does a recovery.
//
// Today is the day of the last entry. A pass before the first entry counts as of that day.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/base/types.h"
#include "proto/checkpoint.pb.h"
#include "proto/schema.pb.h"

namespace cistern {

// The largest expire_days of the tables of a schema; 0: none of them expires rows by day.
uint32_t LongestExpireDays(const v1::Schema& schema);

// Adds the pass after those of `days`, committed on `day`. A day before today counts as today: a
// clock that jumps back makes no row older or younger. Leaves out the days that a table with
// expire_days up to `longest` does not need.
void AddPassDay(PassId pass, uint32_t day, uint32_t longest, v1::PassDays* days);

// Rows whose last pass is below the result were last seen `expire_days` > 0 days ago or longer.
PassId FirstPassWithin(const v1::PassDays& days, uint32_t expire_days);

// kInvalidArgument for days that no commit of `pass` with this schema can have: days without a
// table that expires by them, entries that do not ascend, a later pass, more days than any table
// needs.
absl::Status CheckPassDays(const v1::PassDays& days, PassId pass, const v1::Schema& schema);

}  // namespace cistern
