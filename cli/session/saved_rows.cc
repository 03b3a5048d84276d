#include "cli/session/saved_rows.h"

#include "absl/strings/numbers.h"
#include "cli/session/saved_place.h"
#include "cli/terminal/exit_code.h"
#include "server/checkpoint/commit_reader.h"
#include "server/saved_model/model_snapshot.h"

namespace cistern {
namespace {

class CommitRows : public SavedRows {
 public:
  explicit CommitRows(std::string name, std::unique_ptr<CommitReader> reader)
      : name_(std::move(name)), reader_(std::move(reader)) {}
  const v1::Schema& schema() const override { return reader_->manifest().schema(); }
  uint32_t shard_num() const override { return reader_->manifest().shard_num(); }
  PassId pass() const override { return reader_->manifest().pass(); }
  std::string name() const override { return name_; }
  absl::Status Read(TableStore& store, ThreadPool& pool) const override {
    return FromCheckpoint(reader_->ReadInto(store, pool));
  }

 private:
  const std::string name_;
  const std::unique_ptr<CommitReader> reader_;
};

class ModelRows : public SavedRows {
 public:
  ModelRows(FileSystem& files, std::string folder, const ModelPart& part)
      : files_(files), folder_(std::move(folder)), part_(part) {}
  const v1::Schema& schema() const override { return part_.schema; }
  uint32_t shard_num() const override { return part_.shard_num; }
  PassId pass() const override { return part_.pass; }
  std::string name() const override { return folder_; }
  absl::Status Read(TableStore& store, ThreadPool& pool) const override {
    return FromCheckpoint(LoadStore(files_, store, folder_, pool).status());
  }

 private:
  FileSystem& files_;
  const std::string folder_;
  const ModelPart part_;
};

// Cuts "@12" off "saved@12" and returns the commit; 0 without one.
uint64_t TakeCommit(std::string* place) {
  uint64_t commit = 0;
  const size_t at = place->rfind('@');
  if (at == std::string::npos || !absl::SimpleAtoi(place->substr(at + 1), &commit)) return 0;
  place->resize(at);
  return commit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SavedRows>> SavedRows::Open(FileSystem& files,
                                                           const std::string& place) {
  std::string path = place;
  const uint64_t commit = TakeCommit(&path);
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = FindState(files, path);
  if (state.ok()) {
    CISTERN_ASSIGN_OR_RETURN(const ParsedManifest manifest, ReadCommit(**state, commit));
    absl::StatusOr<std::unique_ptr<CommitReader>> reader =
        CommitReader::Open(**state, manifest.manifest);
    if (!reader.ok()) return FromCheckpoint(reader.status());
    return std::make_unique<CommitRows>(
        absl::StrCat((*state)->path(), ", commit ", manifest.manifest.commit()),
        *std::move(reader));
  }
  if (!absl::IsNotFound(state.status())) return state.status();
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, place);
  if (absl::IsNotFound(parts.status())) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(place, " is neither a commit nor a saved model")),
        "name a data_dir of servers or its folder state (append @COMMIT for an older commit), or "
        "the folder of a saved model");
  }
  if (!parts.ok()) return FromCheckpoint(parts.status());
  return std::make_unique<ModelRows>(files, place, parts->front());
}

}  // namespace cistern
