// The forms of rows that have no schema: those of PSLib and Paddle, and of other dims. A row's form
// is inferred from its number of fields (LegacyRows in value_upgrade.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern {

// Which of the optional ctr fields a row has (older forms lack them). A missing uid reads as 0, a
// missing slot as -1.
struct CtrFields {
  bool uid = true, slot = true;

  bool Has(absl::string_view field) const {
    return (uid || field != "uid") && (slot || field != "slot");
  }
};

// The fields of a row.
struct OldForm {
  CtrFields fields;
  uint32_t dim = 0;
  bool has_embedx = false;
};

// One accessor's knowledge of older forms. A row is a line, where each number is one field, or a
// record, where a wide number is two cells; `cells` counts either without the key.
//
// Threads: immutable; any thread.
class OldRows {
 public:
  virtual ~OldRows() = default;

  // The optional fields of a row without embedx; nullopt for any other row. A field that `present`
  // lacks is lacking in every row of the model.
  virtual std::optional<CtrFields> FieldsOfShort(size_t cells, bool is_text,
                                                 CtrFields present) const {
    return std::nullopt;
  }
  // The form of a row; nullopt if none fits.
  virtual std::optional<OldForm> FormOf(size_t cells, bool is_text, CtrFields present) const = 0;
  // Inserts the cells of the fields that a record lacks.
  virtual void AddMissing(CtrFields present, std::vector<float>* cells) const {}
};

}  // namespace cistern
