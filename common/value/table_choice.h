// Which tables of a saved model a load reads into which of its own: all, or those that the caller
// names, as they are or converted (value_upgrade.h).
//
// A dense table is one run of parameters whose number follows from the model's shape, so one of
// another number of rows has no row for row counterpart. A converting load leaves it out, and says
// so: nothing is written there, and the next training starts those parameters anew.
#pragma once

#include <string>
#include <vector>

#include "proto/control_plane.pb.h"
#include "proto/schema.pb.h"

namespace cistern {

struct TableChoice {
  // Why rows of `there` cannot be those of `here`: the first difference, for people ("here" and
  // "there" are its words). Empty: they can.
  std::string difference;
  // Whether the same choice with `upgrade` has no difference.
  bool upgrade_cures = false;
  // Tables of `here` that are not read, in their order.
  std::vector<v1::TableLeftOut> left_out;

  bool Reads(const std::string& table) const;
};

// only: names of the tables to read, each of which both must have; empty: all, and then both have
// tables of the same names. Without `upgrade` those tables must be equal. With it a sparse table
// needs the same accessor, and a dense one of another number of rows is left out; where it is named
// in `only` that is a difference.
TableChoice ChooseTables(const v1::Schema& here, const v1::Schema& there,
                         const std::vector<std::string>& only, bool upgrade);

}  // namespace cistern
