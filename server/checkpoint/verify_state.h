// Verifies a commit: every file and block, and the sums that its manifest records.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_pool.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::server {

// The result of checking one commit.
struct CommitCheck {
  uint64_t commit = 0;
  v1::Manifest manifest;  // empty if it cannot be read
  // One for each item that cannot be trusted (kDataLoss) or read; empty if the commit is sound.
  std::vector<absl::Status> faults;
  // Of a local state: the server whose files were checked alone, so the tables were not.
  std::optional<uint32_t> part;
};

// Threads: one at a time.
class StateVerifier {
 public:
  // folder, pool: borrowed. expect: called with the number of files and tables of a commit. done:
  // called for each one that was read.
  StateVerifier(
      const StateFolder& folder, ThreadPool& pool,
      std::function<void(uint64_t more)> expect = [](uint64_t) {},
      std::function<void()> done = [] {})
      : folder_(folder), pool_(pool), expect_(std::move(expect)), done_(std::move(done)) {}

  // Checks the manifest, that it follows the previous one if that exists, every block of its files
  // (once, where several commits share a file), and that the merged rows add up to the digest of
  // each shard and table.
  CommitCheck Check(uint64_t commit);

 private:
  absl::Status CheckPrevious(const v1::Manifest& manifest) const;
  absl::Status CheckFile(const v1::RowFile& file) const;
  // Rebuilds the contents of the tables from the files. Appends faults to *faults.
  void CheckTables(const v1::Manifest& manifest, std::vector<absl::Status>* faults) const;

  const StateFolder& folder_;
  ThreadPool& pool_;
  const std::function<void(uint64_t more)> expect_;
  const std::function<void()> done_;
  std::set<std::pair<std::string, uint64_t>> good_files_;  // name and root
};

}  // namespace cistern::server
