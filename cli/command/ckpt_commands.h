// cistern ckpt and cistern verify: inspect and rewrite the commits of a durable fleet and saved
// models on disk, without a server.
#pragma once

#include <string>

#include "app/state/reshard_state.h"
#include "app/state/save_changes.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// The subcommands of `ckpt`, which commands.cc adds.
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

// The form of an increment.
struct IncrementFlags {
  std::string rows = "text";  // v1::SaveFormat::Kind in lower case
  bool gzip = false;
};
void AddIncrementFormatFlags(Command& command, IncrementFlags* flags);
// Runs `cistern ckpt changes`. options.format is set from the flags.
absl::StatusOr<Report> RunSaveChanges(app::SaveChangesOptions options, const IncrementFlags& flags,
                                      Console* console);

// Runs `cistern ckpt reshard` and `thresholds`.
absl::StatusOr<Report> RunCkptReshard(const app::ReshardOptions& options, Console& console);

}  // namespace cistern::cli
