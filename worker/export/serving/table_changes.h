// What changed in a table since a version for serving, found by comparing encoded rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "common/serving/rows_encoder.h"
#include "common/serving/serving_version.h"
#include "worker/export/serving/table_layers.h"

namespace cistern {

// The rows that differ from those of an older version, and those that no longer exist.
//
// Memory: the rows that differ; with `complete` also 8 bytes a row.
//
// Threads: one at a time.
class TableChanges {
 public:
  // Opens the layers of `old`, below the serving folder `root`. complete: Add is called for every
  // row of the table, so that a row of `old` that is not added is gone. verified: as in
  // TableLayers::Open. kDataLoss: corrupt layers (of the oldest only the footer is checked).
  static absl::StatusOr<std::unique_ptr<TableChanges>> Open(const std::string& root,
                                                            const ServingTable& old,
                                                            RowPrecision precision, bool complete,
                                                            VerifiedFiles* verified);

  // Records the current row of `key`. weights: [dim]. Whether it differs is known after Finish at
  // the latest: rows are looked up together, so that their cache misses overlap.
  void Add(Key key, const float* weights);
  // Records that the row of `key` is gone, if there was one. Without `complete`.
  void Remove(Key key);
  // Call it after the last Add.
  absl::Status Finish();

  // After Finish:
  bool empty() const { return changed_.empty(); }
  uint64_t changed() const { return changed_.size(); }  // rows that differ or are gone
  uint64_t rows() const { return rows_; }               // of the table now
  uint64_t digest() const { return digest_; }           // of the table now
  // The rows of all layers of `old` but the oldest.
  uint64_t changed_before() const { return layers_.changed_rows(); }

  // Writes the changes as a layer.
  absl::Status Write(RowsEncoder* out) const;
  // Writes all rows as they are now: the layers of `old` with the changes applied.
  absl::Status WriteAll(RowsEncoder* out) const;

 private:
  TableChanges(const ServingTable& old, const RowsShape& shape, bool complete, TableLayers layers);
  // Compares the rows in fresh_ with those of the layers.
  void Compare();
  // The newest rows of `keys` in the layers, as they are stored; null for a key that has none.
  // weights: [n].
  void OldRows(absl::Span<const Key> keys, const char** weights) const;
  // Notes the rows of the layers that were not added.
  absl::Status FindGone();
  // A row that differs: where it is in bytes_; or that is gone.
  struct Changed {
    uint64_t mixed;
    size_t at;
  };
  static constexpr size_t kGone = SIZE_MAX;

  const RowsShape shape_;
  const size_t weight_bytes_;
  const bool complete_;
  const TableLayers layers_;
  std::vector<Changed> changed_;   // after Finish in the order of the mixed keys
  std::string bytes_;              // stored weights
  absl::flat_hash_set<Key> seen_;  // with complete_
  uint64_t rows_ = 0, digest_ = 0;
  ServedRowDigest row_digest_;
  std::vector<Key> fresh_;   // added, and not yet compared
  std::string fresh_bytes_;  // their weights as they are stored
  std::string row_;
};

}  // namespace cistern
