#include "cli/command/demo.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "app/run/run_folder.h"
#include "cli/command/demo_model.h"
#include "cli/command/save_load_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "worker/data/prepare/synthetic.h"

namespace cistern {
namespace {

namespace fs = std::filesystem;

constexpr int kDemoSteps = 7;
constexpr uint64_t kSamplesMin = 4000;
constexpr char kSavedName[] = "demo";

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::InternalError(absl::StrCat(path, ": cannot be written"));
}

// The last progress line of a log.
std::string LastProgress(const std::string& log) {
  std::string last;
  for (absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    if (absl::StrContains(line, "event=")) last = std::string(line);
  }
  return last;
}

}  // namespace

Demo::~Demo() {
  servers_.reset();
  std::error_code error;
  if (remove_dir_) fs::remove_all(dir_, error);
}

app::FleetOptions Demo::FleetOf() const {
  app::FleetOptions fleet;
  fleet.servers = servers_->addresses();
  fleet.cluster = "demo";
  return fleet;
}

app::ModelOptions Demo::ModelOf() const {
  app::ModelOptions model;
  model.config = Path("deepfm.json");
  model.fleet = FleetOf();
  return model;
}

absl::Status Demo::Step(const std::string& name, const std::function<absl::Status()>& body) {
  if (interrupted_->load()) return absl::CancelledError("interrupted; all processes were stopped");
  const std::string title = absl::StrFormat("[%d/%d] %-9s", ++step_, kDemoSteps, name);
  console_->Update(title + "...");
  const absl::Time start = absl::Now();
  said_.clear();
  const absl::Status done = body();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  console_->Say(
      absl::StrFormat("%s %6s  %s", title, DurationText(seconds), done.ok() ? said_ : "failed"));
  report_.json["steps"].push_back({{"name", name}, {"seconds", seconds}});
  return AddContext(done, absl::StrCat("demo, step ", step_, " (", name, ")"));
}

absl::Status Demo::MakeFolder() {
  std::error_code error;
  if (flags_.dir.empty()) {
    std::string pattern = (fs::temp_directory_path(error) / "cistern-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return absl::InternalError(absl::StrCat(pattern, ": cannot be created"));
    }
    dir_ = pattern;
    remove_dir_ = !flags_.keep;
  } else {
    if (fs::exists(flags_.dir, error) && !fs::is_empty(flags_.dir, error)) {
      return WithFix(absl::InvalidArgumentError(
                         absl::StrCat("--dir ", flags_.dir, ": exists and is not empty")),
                     "name a new folder");
    }
    dir_ = fs::absolute(flags_.dir, error).string();
  }
  const absl::Status named = app::CheckNameForJson(flags_.dir.empty() ? "TMPDIR" : "--dir", dir_);
  if (!named.ok()) {
    if (flags_.dir.empty()) fs::remove(dir_, error);
    return named;
  }
  for (const char* name : {"saved", "logs"}) fs::create_directories(Path(name), error);
  if (error) return absl::InternalError(absl::StrCat(dir_, ": ", error.message()));
  return absl::OkStatus();
}

absl::Status Demo::MakeData() {
  SyntheticOptions options;
  options.out = Path("data");
  options.train_samples = flags_.samples;
  options.test_samples = flags_.samples / 4;
  options.keys_per_slot = 50;
  options.factor_scale = 0.2;
  options.interrupted = interrupted_;
  CISTERN_ASSIGN_OR_RETURN(const SyntheticSummary data, WriteSynthetic(options));
  best_auc_ = data.best_auc;
  DemoModelShape shape;
  shape.train = data.train_list;
  shape.test = data.test_list;
  shape.check = options.check == NormCheck::kSum ? "Sum" : "None";
  shape.wide_keys = options.wide_keys;
  shape.dense_dim = options.dense;
  shape.slot_num = options.slots;
  shape.max_keys = options.slots;
  said_ = absl::StrFormat("%d samples to train on, %d to test; best possible AUC %.4f",
                          options.train_samples, options.test_samples, best_auc_);
  return WriteFile(Path("deepfm.json"), DemoModel(shape));
}

absl::Status Demo::StartServers(int server_num) {
  app::LocalServersOptions options;
  options.server_num = server_num;
  options.program = programs_ + "/cistern-server";
  options.cluster = "demo";
  options.data_dir = Path("saved");
  options.log_dir = Path("logs");
  CISTERN_ASSIGN_OR_RETURN(servers_, app::LocalServers::Start(options));
  said_ = absl::StrCat(server_num, " x cistern-server on ", servers_->addresses());
  return absl::OkStatus();
}

absl::Status Demo::WaitForWorker(app::ChildProcess& worker) {
  while (worker.Running()) {
    if (interrupted_->load()) worker.Signal(SIGTERM);
    absl::SleepFor(absl::Milliseconds(100));
    const std::string progress = LastProgress(worker.LogEnd());
    if (!progress.empty()) console_->Update(progress.substr(0, console_->columns() - 1));
  }
  if (worker.exit_code() == 0) return absl::OkStatus();
  if (interrupted_->load()) return absl::CancelledError("interrupted; all processes were stopped");
  return absl::InternalError(
      absl::StrCat("cistern-worker ended with code ", worker.exit_code(), ": ", worker.LogEnd()));
}

absl::Status Demo::RunWorker() {
  const std::vector<std::string> argv = {programs_ + "/cistern-worker",
                                         Path("deepfm.json"),
                                         "--servers",
                                         servers_->addresses(),
                                         "--cluster",
                                         "demo",
                                         "--out",
                                         Path("run"),
                                         "--rank",
                                         "0",
                                         "--world-size",
                                         "1",
                                         "--json"};
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::ChildProcess> worker,
                           app::ChildProcess::Start(argv, Path("logs/worker.log")));
  CISTERN_RETURN_IF_ERROR(WaitForWorker(*worker));
  CISTERN_ASSIGN_OR_RETURN(const std::string line, worker->ReadLine(absl::Seconds(10)));
  const auto summary = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!summary.is_object()) {
    return absl::InternalError(absl::StrCat("cistern-worker printed: ", line));
  }
  report_.json["train"] = summary;
  said_ = absl::StrFormat("%d samples at %s samples/s, %d rows, loss %.4f",
                          summary.value("samples", uint64_t{0}),
                          CountText(summary.value("samples_per_second", 0.0)),
                          summary.value("rows", uint64_t{0}), summary.value("loss", 0.0));
  return absl::OkStatus();
}

absl::Status Demo::PredictTo(const std::string& output) {
  app::PredictOptions flags;
  flags.model = ModelOf();
  flags.data = {Path("data/test/file_list.txt")};
  flags.output = output;
  CISTERN_ASSIGN_OR_RETURN(const app::PredictResult predicted,
                           app::PredictFiles(flags, NotesOn(*console_)));
  auc_ = predicted.summary.auc.value_or(0);
  said_ = absl::StrFormat("AUC %.4f; the best possible on this data is %.4f", auc_, best_auc_);
  return absl::OkStatus();
}

absl::Status Demo::Save() {
  CISTERN_ASSIGN_OR_RETURN(const Report saved, RunSave({FleetOf(), kSavedName}));
  servers_.reset();
  said_ = absl::StrFormat("%d rows, %s by 2 servers; both were stopped",
                          saved.json["rows"].get<uint64_t>(),
                          BytesText(saved.json["bytes"].get<uint64_t>()));
  return absl::OkStatus();
}

absl::Status Demo::Load() {
  CISTERN_RETURN_IF_ERROR(StartServers(3));
  LoadFlags flags;
  flags.fleet = FleetOf();
  flags.name = kSavedName;
  CISTERN_ASSIGN_OR_RETURN(const Report loaded, RunLoad(flags));
  said_ = absl::StrFormat("%d rows onto 3 new servers", loaded.json["rows"].get<uint64_t>());
  return absl::OkStatus();
}

absl::Status Demo::Compare() {
  const double before = auc_;
  CISTERN_RETURN_IF_ERROR(PredictTo(Path("predictions-3-servers.tsv")));
  const std::string two = Contents(Path("predictions-2-servers.tsv"));
  const std::string three = Contents(Path("predictions-3-servers.tsv"));
  if (two.empty() || two != three || before != auc_) {
    return absl::InternalError("the predictions on 2 and on 3 servers differ");
  }
  const auto lines = std::count(two.begin(), two.end(), '\n');
  said_ = absl::StrFormat("AUC %.4f; %d predictions, the same bytes as before", auc_, lines);
  report_.json["predictions"] = lines;
  report_.json["identical"] = true;
  return absl::OkStatus();
}

std::string Demo::NextSteps() const {
  if (remove_dir_) {
    return "\nNothing was kept. To keep data, model and checkpoint for further steps:\n"
           "  cistern demo --dir demo\n"
           "A real data set: examples/frappe and examples/criteo.\n";
  }
  return absl::StrCat(
      "\n", dir_, " now holds deepfm.json (the model), data/, run/ (metrics.jsonl, model/), ",
      "saved/ (the servers' files), logs/.\nWhat to do next:\n", "  cistern data inspect ",
      Path("data/test/file_list.txt"), "\n", "  ", programs_, "/cistern eval ", Path("deepfm.json"),
      " --model ", Path("run"), "\n", "  ", programs_, "/cistern train ", Path("deepfm.json"),
      " --out ", Path("run2"), " --set solver.num_epochs=5\n",
      "A real data set: examples/frappe and examples/criteo.\n");
}

absl::StatusOr<Report> Demo::Run() {
  if (flags_.samples < kSamplesMin) {
    return absl::InvalidArgumentError(
        absl::StrCat("--samples ", flags_.samples, ": expected ", kSamplesMin, " or more"));
  }
  CISTERN_ASSIGN_OR_RETURN(programs_, app::ProgramFolder());
  CISTERN_RETURN_IF_ERROR(MakeFolder());
  report_.json["dir"] = dir_;
  report_.json["steps"] = nlohmann::ordered_json::array();
  CISTERN_RETURN_IF_ERROR(Step("data", [this] { return MakeData(); }));
  CISTERN_RETURN_IF_ERROR(Step("servers", [this] { return StartServers(2); }));
  CISTERN_RETURN_IF_ERROR(Step("train", [this] { return RunWorker(); }));
  CISTERN_RETURN_IF_ERROR(
      Step("evaluate", [this] { return PredictTo(Path("predictions-2-servers.tsv")); }));
  CISTERN_RETURN_IF_ERROR(Step("save", [this] { return Save(); }));
  CISTERN_RETURN_IF_ERROR(Step("load", [this] { return Load(); }));
  CISTERN_RETURN_IF_ERROR(Step("compare", [this] { return Compare(); }));
  servers_.reset();
  report_.json["auc"] = auc_;
  report_.json["best_auc"] = best_auc_;
  report_.text = absl::StrFormat(
      "AUC %.4f of %.4f possible; after save and load onto another number of servers every "
      "prediction is the same, bit for bit.\n%s",
      auc_, best_auc_, NextSteps());
  return report_;
}

}  // namespace cistern
