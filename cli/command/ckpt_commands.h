// cistern ckpt and cistern verify: inspect and rewrite the commits of a durable fleet and saved
// models on disk, without a server.
#pragma once

#include <string>
#include <vector>

#include "app/state/save_changes.h"
#include "cli/terminal/command_line.h"
#include "proto/schema.pb.h"

namespace cistern {

void AddCkptCommands(Command& root);
// The subcommands.
void AddCkptListCommand(Command& ckpt);
void AddCkptDiffCommand(Command& ckpt);
void AddCkptChangesCommand(Command& ckpt);
void AddCkptApplyCommand(Command& ckpt);
void AddCkptReshardCommand(Command& ckpt);
void AddCkptThresholdsCommand(Command& ckpt);
void AddCkptRepairTermsCommand(Command& ckpt);
void AddCkptPushCommand(Command& ckpt);
void AddCkptPullCommand(Command& ckpt);
void AddCkptAdoptManifestCommand(Command& ckpt);

void AddVerifyCommand(Command& root);

// Applies "TABLE.NAME=NUMBER" to the ctr tables of a schema. NAME is a rule that only saves and
// shrinks read (configuration.md). kInvalidArgument for any other, with a list of those that exist.
absl::Status ChangeThresholds(const std::vector<std::string>& changes, v1::Schema* schema);

// The form of an increment.
struct IncrementFlags {
  std::string rows = "text";  // v1::SaveFormat::Kind in lower case
  bool gzip = false;
};
void AddIncrementFormatFlags(Command& command, IncrementFlags* flags);
// Runs `cistern ckpt changes`. options.format is set from the flags.
absl::StatusOr<Report> RunSaveChanges(app::SaveChangesOptions options, const IncrementFlags& flags,
                                      Console* console);

// Runs `cistern ckpt repair-epochs PATH`.
absl::StatusOr<Report> RunCkptRepairTerms(const std::string& path);

struct CkptReshardFlags {
  std::string state, out;
  uint64_t commit = 0;                     // 0: the newest commit
  uint64_t server_num = 0, shard_num = 0;  // 0: unchanged
  uint64_t threads = 0;
  std::vector<std::string> set;  // of `ckpt thresholds`: TABLE.NAME=NUMBER
};
absl::StatusOr<Report> RunCkptReshard(const CkptReshardFlags& flags, Console* console = nullptr);

}  // namespace cistern
