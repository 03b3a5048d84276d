// New bases for the tables of a serving folder, written while further versions are published.
#pragma once

#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/io/file_system.h"
#include "common/serving/serving_version.h"

namespace cistern {

// Merges all layers that some tables have in one version, each table into one file: a base. Later
// versions consist of these layers and further ones, so the base can replace the layers there.
//
// A base lies in the folder of the newest layer that it holds. That folder exists for as long as
// any version needs the layers or the base, and whatever a killed process leaves there goes with
// it.
//
// Threads: one at a time. A merge runs on a thread of its own, of low priority, one merge at a
// time.
class BaseMerge {
 public:
  // files: outlives this. root: the serving folder.
  BaseMerge(FileSystem* files, std::string root) : files_(files), root_(std::move(root)) {}
  ~BaseMerge();  // ends the merge

  // Begins to merge the layers of `tables` (indices) of `version`, unless a merge runs or its
  // result has not been dropped.
  //
  // Memory: 8 bytes a row of the largest table, and buffers.
  void Start(const ServingVersion& version, const std::vector<size_t>& tables);
  // Waits for the end of the merge that runs, if any.
  void AwaitEnd() const;

  // Lets `version` name finished bases in the place of the layers that they hold, and returns
  // whether it does so now. A merge of layers that `version` has not (somebody switched to an older
  // version) is dropped.
  //
  // kDataLoss: the layers are damaged. Other errors: those of the file system. Either drops the
  // merge.
  absl::StatusOr<bool> Apply(ServingVersion* version);
  // Forgets the result. A merge that runs ends soon. No file is removed, for a version may name it.
  void Drop();

 private:
  // A table's base, and what it holds.
  struct Base {
    size_t table = 0;
    std::string name;
    RowPrecision precision = RowPrecision::kFloat32;
    uint32_t dim = 0;
    uint64_t digest = 0;
    std::vector<ServingFile> layers;
    ServingFile file;  // once it is written
  };
  void Run(std::vector<Base> bases);
  absl::Status Write(Base* base) const;
  bool is_dropped() const;
  static bool Fits(const Base& base, const ServingVersion& version);

  FileSystem* const files_;
  const std::string root_;
  mutable absl::Mutex mutex_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<Base> bases_ ABSL_GUARDED_BY(mutex_);  // empty: nothing runs, and nothing is finished
  ThreadPool thread_{1};                             // last: it uses the members above
};

}  // namespace cistern
