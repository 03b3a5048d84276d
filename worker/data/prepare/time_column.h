// Tells columns of times from columns of other numbers.
#pragma once

#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// Whether a column holds dates or times: texts of one form, or numbers within the range of one, if
// the name says so: seconds, milliseconds, microseconds or nanoseconds since 1970, ticks of Windows
// and Chrome, days of a spreadsheet, since 1970 or Julian ones, or digits YYYYMMDD, YYYYDDD,
// YYYYMMDDhh[mm[ss[fff]]], YYMMDDhh.
bool IsTimeColumn(const ColumnProfile& column);

}  // namespace cistern::data
