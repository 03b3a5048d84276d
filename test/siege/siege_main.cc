// cistern-siege: attacks a durable fleet in every known way while it trains.
//
//   cistern-siege [--short | --long] [--keep] [--only=GROUP]
//
// Starts two real servers and a real training, and runs the groups of attacks (attacks.h) in order.
// After each group the servers must run and answer, and the training must continue. The final
// tables must equal those of an undisturbed training, bit for bit. Exit code 1 if any attack got
// through.
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "test/siege/attacks.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

constexpr uint64_t kForever = 1000000;  // epochs; the siege ends earlier
constexpr absl::Duration kEpochLimit = absl::Seconds(60);
constexpr absl::Duration kTrainingLimit = absl::Minutes(10);

struct Flags {
  bool is_long = false, keep = false;
  std::string only;  // a group; empty: all
};

class SiegeRun {
 public:
  SiegeRun(const Flags& flags, const std::string& programs) : flags_(flags) {
    siege_.programs = programs;
    siege_.folder = folder_.path();
    siege_.is_long = flags.is_long;
    siege_.report = &report_;
  }

  // The exit code.
  int Run() {
    const absl::Status status = Stages();
    report_.Expect(status.ok(), absl::StrCat("the siege completes: ", status.ToString()));
    report_.PrintTable();
    std::printf("%llu attacks, %llu failures\n", static_cast<unsigned long long>(report_.tried()),
                static_cast<unsigned long long>(report_.failures()));
    if (flags_.keep) {
      std::error_code error;
      std::filesystem::copy(folder_.path(), "siege-files", std::filesystem::copy_options::recursive,
                            error);
    }
    return report_.failures() == 0 ? 0 : 1;
  }

 private:
  absl::Status Stages() {
    CISTERN_RETURN_IF_ERROR(BesiegeTraining());
    Group("rendezvous", AttackRendezvous);
    Group("certificates", AttackWithCertificates);
    Group("serving", AttackServing);
    Group("as the writer", AttackAsWriter);
    Group("idle servers", AttackIdleServers);
    Group("connections", AttackDescriptors);
    Group("threads", AttackThreads);
    return absl::OkStatus();
  }

  // The groups that attack servers during a training.
  absl::Status BesiegeTraining() {
    for (const char* alone : {"rendezvous", "certificates", "serving", "as the writer",
                              "idle servers", "connections", "threads"}) {
      if (flags_.only == alone) return MakeTrainingFiles(siege_.folder);
    }
    CISTERN_RETURN_IF_ERROR(AddContext(Prepare(), "before the siege"));

    Stage("control", AttackControl);
    Stage("frames", AttackFrames);
    Stage("orders", AttackOrders);
    Stage("by name", AttackByName);
    Stage("tcp and http/2", AttackWire);
    Stage("calls", AttackCalls);
    CheckAllUse();
    report_.Expect(KeptHash() == kept_, "the saved model 'kept' is unchanged");
    CISTERN_RETURN_IF_ERROR(AddContext(ResumeAfterTakeOver(), "after the take-over"));
    CISTERN_RETURN_IF_ERROR(CompareDigests());
    for (const auto& server : fleet_.servers) {
      report_.Expect(server->StopCleanly(), "a besieged server ends on SIGTERM with exit code 0");
    }
    return absl::OkStatus();
  }

  Training::Options OptionsOf(uint64_t epochs, const std::vector<std::string>& more) const {
    Training::Options options;
    options.programs = siege_.programs;
    options.folder = siege_.folder;
    options.servers = fleet_.addresses();
    options.epochs = epochs;
    options.flags = more;
    return options;
  }

  // Starts servers in a folder of their own, trains two epochs, saves a model of them, and starts
  // the training to attack.
  absl::Status Prepare() {
    training_.reset();
    fleet_ = SiegeFleet();
    siege_.folder = absl::StrCat(folder_.path(), "/fleet", ++fleets_);
    std::error_code error;
    std::filesystem::create_directories(siege_.folder, error);
    CISTERN_RETURN_IF_ERROR(MakeTrainingFiles(siege_.folder));
    CISTERN_ASSIGN_OR_RETURN(fleet_, SiegeFleet::Start(siege_.programs, siege_.folder, 2));
    siege_.fleet = &fleet_;
    CISTERN_ASSIGN_OR_RETURN(training_, Training::Start(OptionsOf(2, {"--no-save-model"})));
    CISTERN_RETURN_IF_ERROR(training_->Finish(kTrainingLimit));
    CISTERN_ASSIGN_OR_RETURN(
        const std::unique_ptr<app::ChildProcess> save,
        app::ChildProcess::Start({siege_.programs + "/cistern", "save", "--name=kept",
                                  "--servers=" + fleet_.addresses()},
                                 siege_.folder + "/save.log"));
    while (save->Running()) absl::SleepFor(absl::Milliseconds(5));
    if (save->exit_code() != 0) return absl::InternalError("cistern save: " + save->LogEnd());
    kept_ = KeptHash();
    CISTERN_ASSIGN_OR_RETURN(training_,
                             Training::Start(OptionsOf(kForever, {"--no-save-model", "--resume"})));
    CISTERN_RETURN_IF_ERROR(training_->AwaitEpochs(4, kEpochLimit));
    before_.clear();
    for (const auto& server : fleet_.servers) before_.push_back(server->Use());
    return absl::OkStatus();
  }

  // Runs a group of attacks on servers of its own.
  void Group(const std::string& name, const std::function<void(const Siege&)>& attack) {
    if (!flags_.only.empty() && flags_.only != name) return;
    const absl::Time start = absl::Now();
    const uint64_t tried = report_.tried(), failed = report_.failures();
    attack(siege_);
    report_.Say(absl::StrFormat("%-16s %5d attacks, %4d failures, %5.1f s", name,
                                report_.tried() - tried, report_.failures() - failed,
                                absl::ToDoubleSeconds(absl::Now() - start)));
  }

  // Runs a group of attacks on the training fleet, and checks servers and training afterwards.
  void Stage(const std::string& name, const std::function<void(const Siege&)>& attack) {
    if (!flags_.only.empty() && flags_.only != name) return;
    Group(name, attack);
    for (size_t rank = 0; rank < fleet_.servers.size(); ++rank) {
      SiegeServer& server = *fleet_.servers[rank];
      report_.Expect(server.Running(),
                     absl::StrCat("server ", rank, " runs after '", name, "': ", server.LogEnd()));
      report_.Expect(AnswersHello(server.address(), kPatience),
                     absl::StrCat("server ", rank, " answers Hello after '", name, "'"));
    }
    const absl::Status trains = training_->AwaitEpochs(training_->epochs() + 1, kEpochLimit);
    report_.Expect(trains.ok(),
                   absl::StrCat("the training continues after '", name, "': ", trains.ToString()));
    report_.Say(absl::StrFormat("    epoch %d, peak %d MB and %d MB", training_->epochs(),
                                PeakMb(0), PeakMb(1)));
    if (trains.ok()) return;
    // A broken fleet stays broken; the following groups attack a new one.
    CheckAllUse();
    const absl::Status again = Prepare();
    report_.Expect(again.ok(), absl::StrCat("a new fleet trains: ", again.ToString()));
  }

  uint64_t PeakMb(size_t rank) const { return fleet_.servers[rank]->Use().peak_bytes >> 20; }

  void CheckAllUse() {
    for (size_t rank = 0; rank < fleet_.servers.size(); ++rank) {
      CheckUse(report_, absl::StrCat("server ", rank), *fleet_.servers[rank], before_[rank]);
    }
  }

  // A hash of the names and bytes of all files of the saved model.
  uint64_t KeptHash() const {
    uint64_t sum = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(fleet_.data_dir + "/kept")) {
      if (!entry.is_regular_file()) continue;
      sum += HashBytes(absl::StrCat(entry.path().string(), "\n", ReadBytes(entry.path())));
    }
    return sum;
  }

  // A claim with take_over ends the training; it resumes from its last commit for two more epochs.
  absl::Status ResumeAfterTakeOver() {
    const std::vector<std::unique_ptr<Stranger>> strangers = TakeOver(siege_);
    const absl::Time end = absl::Now() + kEpochLimit;
    while (training_->Running() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(20));
    report_.Expect(!training_->Running(), "a training ends when its servers are taken over");
    epochs_ = training_->epochs() + 2;
    // The strangers are still connected, so the training must take over in turn.
    std::vector<std::string> flags = {"--no-save-model", "--resume"};
    if (KnowsFlag(siege_.programs + "/cistern-worker", "--take-over")) {
      flags.push_back("--take-over");
    }
    CISTERN_ASSIGN_OR_RETURN(training_, Training::Start(OptionsOf(epochs_, flags)));
    return training_->Finish(kTrainingLimit);
  }

  // Whether a program's --help has `flag`.
  bool KnowsFlag(const std::string& program, const std::string& flag) const {
    const auto help = app::ChildProcess::Start({program, "--help"}, siege_.folder + "/help.log");
    if (!help.ok()) return false;
    while (true) {
      const absl::StatusOr<std::string> line = (*help)->ReadLine(absl::Seconds(10));
      if (!line.ok()) return false;
      if (absl::StrContains(*line, flag)) return true;
    }
  }

  absl::Status CompareDigests() {
    CISTERN_ASSIGN_OR_RETURN(const FleetDigests besieged, DigestsOf(fleet_.addresses()));
    SiegeServer::Options alone;
    alone.programs = siege_.programs;
    alone.log = siege_.folder + "/undisturbed-server.log";
    CISTERN_ASSIGN_OR_RETURN(const auto server, SiegeServer::Start(alone));
    Training::Options options = OptionsOf(epochs_, {"--no-save-model"});
    options.name = "undisturbed";
    options.servers = server->address();
    CISTERN_ASSIGN_OR_RETURN(const auto training, Training::Start(options));
    CISTERN_RETURN_IF_ERROR(training->Finish(kTrainingLimit));
    CISTERN_ASSIGN_OR_RETURN(const FleetDigests expected, DigestsOf(server->address()));
    report_.Say(absl::StrCat("undisturbed, ", epochs_, " epochs: ", DigestText(expected)));
    report_.Say(absl::StrCat("besieged:    ", DigestText(besieged)));
    report_.Expect(besieged == expected, "the tables equal those of an undisturbed training");
    return absl::OkStatus();
  }

  const Flags flags_;
  const TempFolder folder_;
  SiegeReport report_;
  Siege siege_;
  SiegeFleet fleet_;
  std::vector<ProcessUse> before_;
  std::unique_ptr<Training> training_;
  uint64_t kept_ = 0, epochs_ = 0, fleets_ = 0;
};

// Raises the limit of descriptors to its maximum: this process opens thousands of connections.
void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--long") == 0) {
      flags.is_long = true;
    } else if (std::strcmp(argv[i], "--keep") == 0) {
      flags.keep = true;
    } else if (absl::StartsWith(argv[i], "--only=")) {
      flags.only = argv[i] + std::strlen("--only=");
    } else if (std::strcmp(argv[i], "--short") != 0) {
      std::fprintf(stderr, "cistern-siege: unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  const char* programs = std::getenv("CISTERN_BIN");
  const absl::StatusOr<std::string> own = app::ProgramFolder();
  if (programs == nullptr && !own.ok()) return 1;
  return SiegeRun(flags, programs != nullptr ? programs : *own).Run();
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  cistern::BecomeLimitedProgram(argc, argv);
  return cistern::Main(argc, argv);
}
