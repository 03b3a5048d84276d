// Checks that a manifest records what the servers have prepared. Server 0 runs the check before it
// gives the manifest its name, because from then on every server discards what the manifest does
// not name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/value/shard_map.h"
#include "server/checkpoint/row_file.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::server {

// The header and sections of one row file.
struct FileFooter {
  RowFileHeader header;
  std::vector<RowSection> sections;
};
// The rows and digest of each sparse table after the commit with these files: the sum over shards
// of what the newest file of the shard recorded. files: in OrderByCommit order, never null.
std::vector<v1::TableState> TotalsOfFooters(const std::vector<const FileFooter*>& files,
                                            const v1::Schema& schema, uint32_t shard_num);

// kDataLoss unless the sparse tables of `manifest` match the totals of the footers of its files.
absl::Status CheckTotalsOfFooters(const std::vector<const FileFooter*>& files,
                                  const v1::Manifest& manifest);

// Threads: one at a time.
class DecisionCheck {
 public:
  DecisionCheck(const StateFolder* folder, const ShardMap& map) : folder_(folder), map_(map) {}

  struct Expected {
    PassId pass = 0;                         // the pass prepared on this server
    uint64_t schema_hash = 0;                // of its tables
    v1::PreparedPart prepared;               // this server's answer to Prepare
    v1::PassDays days;                       // with which it was prepared
    bool own_files_only = false;             // the files of other servers are elsewhere
    const ParsedManifest* newest = nullptr;  // the previous commit; null: none
  };
  // Checks names and numbers before it opens any file. own_files_only: opens those of this server
  // alone, so the totals of the tables stay unchecked if there are other servers.
  //
  // kInvalidArgument: the manifest contradicts itself, what this server has prepared, its files on
  // disk or their footers. kAborted: a file of an earlier commit is gone, which happens after a
  // restart of its server. kFailedPrecondition: this server cannot see a file of another server.
  absl::Status Check(const v1::Manifest& manifest, const Expected& expected);

 private:
  absl::Status CheckNewFiles(const v1::Manifest& manifest) const;
  absl::Status CheckOwnPart(const v1::Manifest& manifest, const Expected& expected) const;
  // Checks the files of server `rank`: those of the previous commit, or a merged base in place of
  // some of them, and the new file.
  absl::Status CheckChain(const v1::Manifest& manifest, const ParsedManifest* newest,
                          uint32_t rank) const;
  // Reads the footers of `files` that are not cached, and drops all others.
  absl::Status ReadFooters(const v1::Manifest& manifest, const std::vector<v1::RowFile>& files);

  const StateFolder* const folder_;
  const ShardMap map_;
  std::map<std::string, FileFooter> footers_;  // by the manifest's entry, serialized
};

}  // namespace cistern::server
