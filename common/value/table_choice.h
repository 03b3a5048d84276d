// Selects the tables of a saved model that a load reads: all of them or those that the caller
// names, unchanged or converted (value_upgrade.h).
//
// A dense table is one array of parameters whose length follows from the model's shape, so rows of
// a dense table with another row count have no counterpart. A converting load leaves such a table
// out and reports it: nothing is written there, and the next training initializes it anew.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "proto/control_plane.pb.h"
#include "proto/schema.pb.h"

namespace cistern {

struct TableChoice {
  // Why rows of `there` cannot be loaded as rows of `here`: the first difference, worded with
  // "here" and "there". Empty: they can be loaded.
  std::string difference;
  // Whether the same choice with `upgrade` has no difference.
  bool upgrade_cures = false;
  // The tables of `here` that are not read, in schema order.
  std::vector<v1::TableLeftOut> left_out;

  bool Reads(const std::string& table) const;
};

// only: the names of the tables to read, which must exist in both schemas. Empty: all tables, and
// both schemas must have the same names. Without `upgrade` the chosen tables must be equal. With
// it, a sparse table needs the same accessor, and a dense table with another row count is left out,
// or is a difference if `only` names it.
TableChoice ChooseTables(const v1::Schema& here, const v1::Schema& there,
                         const std::vector<std::string>& only, bool upgrade);

// `error`, which reports the difference of `choice`, with what cures it: an upgrade of the rows,
// where that is possible.
absl::Status OtherTables(const TableChoice& choice, const absl::Status& error);

}  // namespace cistern
