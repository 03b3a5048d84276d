// The histogram of one field over all rows of a table.
#pragma once

#include <cstdint>
#include <string>

#include "app/table/histogram.h"
#include "common/base/status.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

struct FieldHistogram {
  std::string field;
  uint64_t rows = 0;  // of the table; rows without the field are not in the histogram
  Histogram histogram;
};

// field: as ValueLayout names it, or "norm": the L2 norm of the weights; empty: show of ctr tables,
// norm of others. kNotFound: no such table. kInvalidArgument, with a fix: no such field, or the
// table is dense.
absl::StatusOr<FieldHistogram> HistogramOf(ParameterClient& client, const std::string& table,
                                           const std::string& field);

}  // namespace cistern::app
