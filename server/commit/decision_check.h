// Whether a manifest is the record of what the servers have prepared: asked by server 0 before it
// gives it its name, because from then on every server throws away what it does not say.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/value/shard_map.h"
#include "server/checkpoint/row_file.h"
#include "server/checkpoint/state_folder.h"

namespace cistern {

// Rows and digest of a sparse table after the commit whose files these are: of each shard what the
// newest of them recorded. files: in the order of OrderByCommit; nullptr is not allowed.
struct FileFooter {
  RowFileHeader header;
  std::vector<RowSection> sections;
};
std::vector<v1::TableState> TotalsOfFooters(const std::vector<const FileFooter*>& files,
                                            const v1::Schema& schema, uint32_t shard_num);

// kDataLoss unless the sparse tables of `manifest` are what the footers of its files add up to.
absl::Status CheckTotalsOfFooters(const std::vector<const FileFooter*>& files,
                                  const v1::Manifest& manifest);

// Threads: one at a time.
class DecisionCheck {
 public:
  DecisionCheck(const StateFolder* folder, const ShardMap& map) : folder_(folder), map_(map) {}

  struct Expected {
    PassId pass = 0;                         // that is prepared on this server
    uint64_t schema_hash = 0;                // of its tables
    v1::PreparedPart prepared;               // what it answered to Prepare
    const ParsedManifest* newest = nullptr;  // the commit before; null: none
  };
  // Names and numbers are checked before any file is looked at.
  //
  // kInvalidArgument: the manifest contradicts itself, what this server has prepared, its files on
  // disk or their footers; kAborted: a file of an earlier commit is gone, which happens where a
  // server was restarted; kFailedPrecondition: this server does not see a file of another one.
  absl::Status Check(const v1::Manifest& manifest, const Expected& expected);

 private:
  absl::Status CheckNewFiles(const v1::Manifest& manifest) const;
  absl::Status CheckOwnPart(const v1::Manifest& manifest, const Expected& expected) const;
  // The files of server `rank`: those of the commit before it, or a merged base in place of some of
  // them, and the new one.
  absl::Status CheckChain(const v1::Manifest& manifest, const ParsedManifest* newest,
                          uint32_t rank) const;
  // Reads the footers that are not known yet, and forgets those of files that are not named.
  absl::Status ReadFooters(const v1::Manifest& manifest);

  const StateFolder* const folder_;
  const ShardMap map_;
  std::map<std::string, FileFooter> footers_;  // by the manifest's entry, serialized
};

}  // namespace cistern
