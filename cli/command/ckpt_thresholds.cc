// cistern ckpt thresholds: other rules for saves and shrinks, in a copy of a commit.
#include <memory>

#include "cli/command/ckpt_commands.h"

namespace cistern::cli {

void AddCkptThresholdsCommand(Command& ckpt) {
  auto flags = std::make_shared<app::ReshardOptions>();
  Command& command = ckpt.Add(
      "thresholds",
      "Copies a commit into a new data_dir with other rules for saves and shrinks of ctr tables.",
      "cistern ckpt thresholds saved --set deep.delete_threshold=0.5 --out saved2");
  command.Argument(
      "STATE", &flags->state,
      {"DIR", "A data_dir of stopped servers, or the state folder in it.", "saved", kRequired});
  command.List("--set", &flags->set, false,
               {"TABLE.NAME=NUMBER",
                "A rule to change: base_threshold, delta_threshold, delta_keep_days, "
                "show_click_decay_rate, delete_threshold or delete_after_unseen_days.",
                "--set deep.delete_threshold=0.5", kRequired});
  command.Flag("--out", &flags->out,
               {"DIR", "The new data_dir; its state folder must hold no commit.", "--out saved2",
                kRequired});
  command.Flag("--commit", &flags->commit,
               {"INT", "The commit to copy; 0: the newest.", "--commit 12"});
  command.Flag("--threads", &flags->threads, ThreadsText("Number of threads"));
  command.Footer(
      "Start the servers on the new data_dir, and change the same keys in the model file\n"
      "(cistern.embeddings.TABLE): a training with --resume continues. The old state is only\n"
      "read. Rows and digests are the same.");
  command.Does([flags](Console& console) { return RunCkptReshard(*flags, console); });
}

}  // namespace cistern::cli
