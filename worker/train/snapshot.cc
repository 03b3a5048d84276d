#include "worker/train/snapshot.h"

#include "absl/strings/str_cat.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

absl::Status SaveHugectrFiles(FileSystem& files, const model::ModelConfig& config,
                              ParameterClient& client, uint64_t iteration) {
  if (!WritesHugectrModel(config)) return absl::OkStatus();
  HugectrPlace place = {config.solver.snapshot_prefix, iteration};
  if (config.cistern.snapshot_form == "v3") place.form = HugectrForm::kV3;
  const absl::Status written =
      WriteHugectrModel(files, config, *CommittedModelOf(client, "the servers"), place).status();
  const std::string snapshot = absl::StrCat("the snapshot of iteration ", iteration);
  if (!client.durable()) {
    return AddContext(written, snapshot + " (solver.snapshot_prefix determines its path)");
  }
  return WithOptions(
      AddContext(written, snapshot + " (the training so far is committed: fix this, or set another "
                                     "solver.snapshot_prefix, and resume)"),
      {"resume"});
}

}  // namespace

bool IsSnapshotDue(const model::SolverConfig& solver, uint64_t iteration) {
  return solver.snapshot > 0 && iteration % solver.snapshot == 0;
}

absl::Status SaveSnapshot(FileSystem& files, const model::ModelConfig& config,
                          ParameterClient& client, const std::string& out_dir, uint64_t iteration,
                          bool again) {
  CISTERN_RETURN_IF_ERROR(SaveHugectrFiles(files, config, client, iteration));
  const std::string folder = absl::StrCat(out_dir, "/snapshot-", iteration);
  if (again) {
    CISTERN_ASSIGN_OR_RETURN(const bool there, files.Exists(folder));
    if (there) return absl::OkStatus();
  }
  return SaveModel(files, client, folder);
}

}  // namespace cistern
