// cistern ckpt thresholds: other rules for saves and shrinks, in a copy of a commit.
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/exit_code.h"
#include "common/base/nearest_name.h"
#include "common/value/schema.h"

namespace cistern {
namespace {

using Set = void (v1::CtrRules::*)(float);
constexpr std::pair<const char*, Set> kRules[] = {
    {"base_threshold", &v1::CtrRules::set_base_threshold},
    {"delta_threshold", &v1::CtrRules::set_delta_threshold},
    {"delta_keep_days", &v1::CtrRules::set_delta_keep_days},
    {"show_click_decay_rate", &v1::CtrRules::set_show_click_decay_rate},
    {"delete_threshold", &v1::CtrRules::set_delete_threshold},
    {"delete_after_unseen_days", &v1::CtrRules::set_delete_after_unseen_days}};

absl::Status Change(const std::string& change, v1::Schema* schema) {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("--set ", change, ": ", why));
  };
  const size_t equals = change.find('='), dot = change.rfind('.', equals);
  float value = 0;
  if (equals == std::string::npos || dot == std::string::npos ||
      !absl::SimpleAtof(change.substr(equals + 1), &value)) {
    return refuse("write TABLE.NAME=NUMBER, as in deep.delete_threshold=0.5");
  }
  const std::string table = change.substr(0, dot), name = change.substr(dot + 1, equals - dot - 1);
  std::vector<std::string> tables, names;
  v1::TableSpec* spec = nullptr;
  for (v1::TableSpec& one : *schema->mutable_tables()) {
    if (one.accessor() != v1::TableSpec::CTR) continue;
    tables.push_back(one.name());
    if (one.name() == table) spec = &one;
  }
  if (spec == nullptr) {
    return refuse(absl::StrCat("no ctr table has this name; there are: ",
                               tables.empty() ? "none" : absl::StrJoin(tables, ", ")));
  }
  for (const auto& [rule, set] : kRules) {
    names.push_back(rule);
    if (name != rule) continue;
    (spec->mutable_ctr()->*set)(value);
    return absl::OkStatus();
  }
  return refuse(absl::StrCat("expected one of ", absl::StrJoin(names, ", "),
                             "; other settings change rows: use cistern load --upgrade"));
}

}  // namespace

absl::Status ChangeThresholds(const std::vector<std::string>& changes, v1::Schema* schema) {
  for (const std::string& change : changes) {
    CISTERN_RETURN_IF_ERROR(Change(change, schema));
  }
  return AddContext(CheckSchema(*schema), "--set");
}

void AddCkptThresholdsCommand(Command& ckpt) {
  auto flags = std::make_shared<CkptReshardFlags>();
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
  command.Does([flags](Console& console) { return RunCkptReshard(*flags, &console); });
}

}  // namespace cistern
