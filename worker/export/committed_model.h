// The committed state of a trained model, as exports read it: from a fleet, or from files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "proto/schema.pb.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// Which state it is.
struct CommittedVersion {
  uint64_t commit = 0;         // the number of the durable commit; 0: not a durable commit
  uint64_t manifest_xxh3 = 0;  // the hash of its manifest; 0 without one
  PassId pass = 0;
};

// One state of a model. All calls read the same state; where that cannot be guaranteed
// beforehand (a fleet whose files are elsewhere), Recheck reports it.
//
// Threads: one at a time.
class CommittedModel {
 public:
  virtual ~CommittedModel() = default;

  virtual const std::string& name() const = 0;  // for messages: "runs/a/state, commit 12"
  virtual CommittedVersion version() const = 0;
  virtual const v1::Schema& schema() const = 0;
  virtual uint32_t shard_num() const = 0;

  // Visits every row of a table: shards in ascending order, the rows of a shard in any order, but
  // in the same order in each call.
  // value: [full_floats] with deferred updates applied; zeros beyond what the row has.
  // has_embedx: true for every row without the accessor ctr.
  using Visit =
      std::function<absl::Status(uint32_t shard, Key, const float* value, bool has_embedx)>;
  virtual absl::Status Scan(TableId table, const Visit& visit) = 0;
  // Of a model whose Scan visits only what changed: the keys of the rows that are gone.
  virtual absl::Status ScanRemoved(TableId table, const std::function<absl::Status(Key)>& visit);
  // The number of rows of a table that each of `server_num` servers holds: those of the shards with
  // shard % server_num equal to its rank. By default they are visited.
  virtual absl::StatusOr<std::vector<uint64_t>> CountRows(TableId table, uint32_t server_num);
  // Reads the rows of `keys`, [n] distinct, all of which exist. values: [n, full_floats] as in
  // Scan. has_embedx: [n]. kInternal: a row is missing.
  virtual absl::Status Pull(TableId table, absl::Span<const Key> keys, float* values,
                            uint8_t* has_embedx) = 0;
  // Visits the rows in the memory caches of the servers, as Scan does. kFailedPrecondition
  // without a memory cache; a state that is read from files has none.
  virtual absl::Status ScanCached(TableId table, const Visit& visit);
  // Reads a whole dense table, [rows, columns]. kNotFound if it was never written.
  virtual absl::StatusOr<std::vector<float>> PullDense(TableId table) = 0;

  // Call it when everything is read, before the result gets its name. kAborted: the state changed
  // meanwhile, so what was read is not one state.
  virtual absl::Status Recheck() = 0;
};

// The state of connected servers. The tables of `client` are created, and it outlives the model.
std::unique_ptr<CommittedModel> CommittedModelOf(ParameterClient& client, const std::string& name);

// Index of the dense table `name` in the schema; -1 if there is none.
int FindDenseTable(const v1::Schema& schema, const std::string& name);

}  // namespace cistern
