#include "test/siege/training.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "app/demo/demo_model.h"
#include "common/base/hash_text.h"
#include "common/rpc/fleet.h"
#include "worker/data/prepare/synthetic.h"

namespace cistern {
namespace {

constexpr absl::Duration kDigestLimit = absl::Seconds(60);
constexpr absl::Duration kLook = absl::Milliseconds(20);

absl::Status AddDigests(ControlPlane& server, FleetDigests* digests) {
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(server.Hello({}, &hello));
  v1::StatsRequest request;
  *request.mutable_identity() = hello.identity();
  request.set_digest(true);
  v1::StatsReply reply;
  CISTERN_RETURN_IF_ERROR(server.Stats(request, &reply));
  for (const auto* tables : {&reply.tables(), &reply.dense_tables()}) {
    for (const v1::TableStats& table : *tables) {
      auto& [rows, digest] = (*digests)[table.name()];
      rows += table.rows();
      digest += table.digest();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FleetDigests> AskDigests(const Fleet& fleet) {
  FleetDigests digests;
  for (const ServerLink& link : fleet.links()) {
    CISTERN_RETURN_IF_ERROR(AddContext(AddDigests(*link.control, &digests), link.name));
  }
  return digests;
}

}  // namespace

absl::StatusOr<FleetDigests> DigestsOf(const std::string& addresses, const RemoteOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, ConnectFleet(addresses, options));
  const absl::Time end = absl::Now() + kDigestLimit;
  absl::StatusOr<FleetDigests> digests = AskDigests(*fleet);
  while (!digests.ok() && absl::Now() < end) {
    absl::SleepFor(kLook);
    digests = AskDigests(*fleet);
  }
  return digests;
}

std::string DigestText(const FleetDigests& digests) {
  std::string text;
  for (const auto& [name, table] : digests) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", table.first, " rows ",
                    HashText(table.second));
  }
  return text;
}

absl::Status MakeTrainingFiles(const std::string& folder) {
  data::SyntheticOptions options;
  options.out = folder + "/samples";
  options.train_samples = 4000;
  options.test_samples = 1000;
  options.keys_per_slot = 200;
  CISTERN_ASSIGN_OR_RETURN(const data::SyntheticSummary data, data::WriteSynthetic(options));
  app::DemoModelShape shape;
  shape.train = data.train_list;
  shape.test = data.test_list;
  shape.wide_keys = options.wide_keys;
  shape.dense_dim = options.dense;
  shape.slot_num = options.slots;
  shape.max_keys = options.slots;
  std::ofstream file(folder + "/model.json");
  file << app::DemoModel(shape);
  file.close();
  return file ? absl::OkStatus() : absl::InternalError(folder + "/model.json cannot be written");
}

absl::StatusOr<std::unique_ptr<Training>> Training::Start(const Options& options) {
  std::unique_ptr<Training> training(new Training(options));
  for (int rank = 0; rank < options.workers; ++rank) {
    if (options.only_rank >= 0 && rank != options.only_rank) continue;
    std::vector<std::string> argv = {options.programs + "/cistern-worker",
                                     options.folder + "/model.json",
                                     "--servers=" + options.servers,
                                     absl::StrCat("--out=", options.folder, "/", options.name),
                                     absl::StrCat("--rank=", rank),
                                     absl::StrCat("--world-size=", options.workers),
                                     absl::StrCat("--set=solver.num_epochs=", options.epochs),
                                     "--set=solver.display=0",
                                     "--threads=1",
                                     "--connect-timeout=20",
                                     "--recovery-limit=60"};
    if (options.workers > 1) argv.push_back("--peers=" + options.peers);
    argv.insert(argv.end(), options.flags.begin(), options.flags.end());
    CISTERN_ASSIGN_OR_RETURN(
        std::unique_ptr<app::ChildProcess> worker,
        app::ChildProcess::Start(
            argv, absl::StrCat(options.folder, "/", options.name, "-", rank, ".log")));
    training->workers_.push_back(std::move(worker));
  }
  return training;
}

bool Training::Running() {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->Running(); });
}

uint64_t Training::epochs() const {
  std::ifstream metrics(absl::StrCat(options_.folder, "/", options_.name, "/metrics.jsonl"));
  uint64_t passes = 0;
  for (std::string line; std::getline(metrics, line);) {
    passes += absl::StrContains(line, "\"event\":\"pass\"");
  }
  return passes;
}

// The end of the log without progress lines.
std::string Training::LogEnd(size_t worker) const {
  std::string said;
  for (absl::string_view line : absl::StrSplit(workers_[worker]->LogEnd(), '\n')) {
    if (!absl::StrContains(line, "samples_per_second=")) absl::StrAppend(&said, line, " ");
  }
  return absl::StrCat("log of worker ", worker, ": ", said);
}

absl::Status Training::AwaitEpochs(uint64_t count, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  while (epochs() < count) {
    if (!Running()) return absl::InternalError("the training ended: " + LogEnd(0));
    if (absl::Now() > end) {
      return absl::DeadlineExceededError(absl::StrCat("the training has ", epochs(), " epochs of ",
                                                      count, " after ",
                                                      absl::FormatDuration(limit)));
    }
    absl::SleepFor(kLook);
  }
  return absl::OkStatus();
}

absl::Status Training::Finish(absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    while (workers_[rank]->Running()) {
      if (absl::Now() > end) {
        return absl::DeadlineExceededError(absl::StrCat(
            "the training has not ended after ", absl::FormatDuration(limit), ": ", LogEnd(rank)));
      }
      absl::SleepFor(kLook);
    }
    if (workers_[rank]->exit_code() == 0) continue;
    return absl::InternalError(
        absl::StrCat("exit code ", workers_[rank]->exit_code(), ": ", LogEnd(rank)));
  }
  return absl::OkStatus();
}

}  // namespace cistern
