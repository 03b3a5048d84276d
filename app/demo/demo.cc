#include "app/demo/demo.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "app/admin/load_fleet.h"
#include "app/admin/save_fleet.h"
#include "app/demo/demo_model.h"
#include "app/fleet/local_servers.h"
#include "app/predict/predict.h"
#include "app/run/run_folder.h"
#include "common/base/amount_text.h"
#include "worker/data/prepare/synthetic.h"

namespace cistern::app {
namespace {

namespace fs = std::filesystem;

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

// Threads: one at a time.
class Demo {
 public:
  // Both outlive this.
  Demo(const DemoOptions& options, const DemoCalls& calls) : options_(options), calls_(calls) {}
  ~Demo();

  absl::StatusOr<DemoResult> Run();

 private:
  // What a step did, in words.
  using Outcome = absl::StatusOr<std::string>;

  absl::Status Step(const std::string& name, const std::function<Outcome()>& body);
  absl::Status MakeFolder();
  absl::Status CheckName() const;
  Outcome MakeData();
  Outcome StartServers(int server_num);
  Outcome RunWorker();
  absl::Status WaitForWorker(ChildProcess& worker);
  // Writes the running servers' predictions of the test data to `output`.
  Outcome PredictTo(const std::string& output);
  Outcome Save();
  Outcome Load();
  Outcome Compare();

  bool IsStopped() const { return calls_.stop != nullptr && *calls_.stop; }
  static absl::Status Stopped() {
    return absl::CancelledError("interrupted; all processes were stopped");
  }
  std::string Path(const std::string& name) const { return result_.dir + "/" + name; }
  FleetOptions FleetOf() const;

  const DemoOptions& options_;
  const DemoCalls& calls_;
  std::unique_ptr<LocalServers> servers_;
  DemoResult result_;
  bool remove_ = false;
};

Demo::~Demo() {
  servers_.reset();
  std::error_code error;
  if (remove_) fs::remove_all(result_.dir, error);
}

FleetOptions Demo::FleetOf() const {
  FleetOptions fleet;
  fleet.servers = servers_->addresses();
  fleet.cluster = "demo";
  return fleet;
}

absl::Status Demo::Step(const std::string& name, const std::function<Outcome()>& body) {
  if (IsStopped()) return Stopped();
  DemoStep step = {static_cast<int>(result_.steps.size()) + 1, name};
  if (calls_.begin) calls_.begin(step);
  const absl::Time start = absl::Now();
  const Outcome outcome = body();
  step.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  if (outcome.ok()) step.outcome = *outcome;
  if (calls_.end) calls_.end(step, outcome.status());
  result_.steps.push_back(step);
  return AddContext(outcome.status(), absl::StrCat("demo, step ", step.number, " (", name, ")"));
}

absl::Status Demo::MakeFolder() {
  std::error_code error;
  if (options_.dir.empty()) {
    std::string pattern = (fs::temp_directory_path(error) / "cistern-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return absl::InternalError(absl::StrCat(pattern, ": cannot be created"));
    }
    result_.dir = pattern;
    remove_ = !options_.keep;
  } else {
    if (fs::exists(options_.dir, error) && !fs::is_empty(options_.dir, error)) {
      return WithFix(WithOptions(absl::InvalidArgumentError(
                                     absl::StrCat(options_.dir, ": exists and is not empty")),
                                 {"dir"}),
                     "name a new folder");
    }
    result_.dir = fs::absolute(options_.dir, error).string();
  }
  result_.kept = !remove_;
  if (const absl::Status named = CheckName(); !named.ok()) {
    if (options_.dir.empty()) fs::remove(result_.dir, error);
    return named;
  }
  for (const char* name : {"saved", "logs"}) fs::create_directories(Path(name), error);
  if (error) return absl::InternalError(absl::StrCat(result_.dir, ": ", error.message()));
  return absl::OkStatus();
}

absl::Status Demo::CheckName() const {
  if (options_.dir.empty()) return CheckNameForJson("TMPDIR", result_.dir);
  return WithOptions(CheckNameForJson("the folder", result_.dir), {"dir"});
}

Demo::Outcome Demo::MakeData() {
  data::SyntheticOptions options;
  options.out = Path("data");
  options.train_samples = options_.samples;
  options.test_samples = options_.samples / 4;
  options.keys_per_slot = 50;
  options.factor_scale = 0.2;
  options.interrupted = calls_.stop;
  CISTERN_ASSIGN_OR_RETURN(const data::SyntheticSummary data, data::WriteSynthetic(options));
  result_.best_auc = data.best_auc;
  DemoModelShape shape;
  shape.train = data.train_list;
  shape.test = data.test_list;
  shape.check = options.check == data::NormCheck::kSum ? "Sum" : "None";
  shape.wide_keys = options.wide_keys;
  shape.dense_dim = options.dense;
  shape.slot_num = options.slots;
  shape.max_keys = options.slots;
  CISTERN_RETURN_IF_ERROR(WriteFile(Path("deepfm.json"), DemoModel(shape)));
  return absl::StrFormat("%d samples to train on, %d to test; best possible AUC %.4f",
                         options.train_samples, options.test_samples, data.best_auc);
}

Demo::Outcome Demo::StartServers(int server_num) {
  LocalServersOptions options;
  options.server_num = server_num;
  options.program = result_.programs + "/cistern-server";
  options.cluster = "demo";
  options.data_dir = Path("saved");
  options.log_dir = Path("logs");
  CISTERN_ASSIGN_OR_RETURN(servers_, LocalServers::Start(options));
  return absl::StrCat(server_num, " x cistern-server on ", servers_->addresses());
}

absl::Status Demo::WaitForWorker(ChildProcess& worker) {
  while (worker.Running()) {
    if (IsStopped()) worker.Signal(SIGTERM);
    absl::SleepFor(absl::Milliseconds(100));
    const std::string progress = LastProgress(worker.LogEnd());
    if (!progress.empty() && calls_.progress) calls_.progress(progress);
  }
  if (worker.exit_code() == 0) return absl::OkStatus();
  if (IsStopped()) return Stopped();
  return absl::InternalError(
      absl::StrCat("cistern-worker ended with code ", worker.exit_code(), ": ", worker.LogEnd()));
}

Demo::Outcome Demo::RunWorker() {
  const std::vector<std::string> argv = {result_.programs + "/cistern-worker",
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
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> worker,
                           ChildProcess::Start(argv, Path("logs/worker.log")));
  CISTERN_RETURN_IF_ERROR(WaitForWorker(*worker));
  CISTERN_ASSIGN_OR_RETURN(const std::string line, worker->ReadLine(absl::Seconds(10)));
  result_.train = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!result_.train.is_object()) {
    return absl::InternalError(absl::StrCat("cistern-worker printed: ", line));
  }
  return absl::StrFormat(
      "%d samples at %s samples/s, %d rows, loss %.4f", result_.train.value("samples", uint64_t{0}),
      CountText(result_.train.value("samples_per_second", 0.0)),
      result_.train.value("rows", uint64_t{0}), result_.train.value("loss", 0.0));
}

Demo::Outcome Demo::PredictTo(const std::string& output) {
  PredictOptions options;
  options.model.config = Path("deepfm.json");
  options.model.fleet = FleetOf();
  options.data = {Path("data/test/file_list.txt")};
  options.output = output;
  CISTERN_ASSIGN_OR_RETURN(
      const PredictResult predicted,
      PredictFiles(options, [this](const std::string& line) { calls_.Note(line); }));
  result_.auc = predicted.summary.auc.value_or(0);
  return absl::StrFormat("AUC %.4f; the best possible on this data is %.4f", result_.auc,
                         result_.best_auc);
}

Demo::Outcome Demo::Save() {
  CISTERN_ASSIGN_OR_RETURN(const SavedFleet saved, SaveFleet({FleetOf(), kSavedName}, {}));
  servers_.reset();
  return absl::StrFormat("%d rows, %s by 2 servers; both were stopped", saved.rows(),
                         BytesText(saved.bytes()));
}

Demo::Outcome Demo::Load() {
  CISTERN_RETURN_IF_ERROR(StartServers(3).status());
  LoadFleetOptions options;
  options.fleet = FleetOf();
  options.name = kSavedName;
  CISTERN_ASSIGN_OR_RETURN(const LoadedFleet loaded, LoadFleet(options, {}));
  return absl::StrFormat("%d rows onto 3 new servers", loaded.rows);
}

Demo::Outcome Demo::Compare() {
  const double before = result_.auc;
  CISTERN_RETURN_IF_ERROR(PredictTo(Path("predictions-3-servers.tsv")).status());
  const std::string two = Contents(Path("predictions-2-servers.tsv"));
  const std::string three = Contents(Path("predictions-3-servers.tsv"));
  if (two.empty() || two != three || before != result_.auc) {
    return absl::InternalError("the predictions on 2 and on 3 servers differ");
  }
  result_.predictions = std::count(two.begin(), two.end(), '\n');
  return absl::StrFormat("AUC %.4f; %d predictions, the same bytes as before", result_.auc,
                         result_.predictions);
}

absl::StatusOr<DemoResult> Demo::Run() {
  if (options_.samples < kSamplesMin) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           options_.samples, " samples: expected ", kSamplesMin, " or more")),
                       {"samples"});
  }
  CISTERN_ASSIGN_OR_RETURN(result_.programs, ProgramFolder());
  CISTERN_RETURN_IF_ERROR(MakeFolder());
  CISTERN_RETURN_IF_ERROR(Step("data", [this] { return MakeData(); }));
  CISTERN_RETURN_IF_ERROR(Step("servers", [this] { return StartServers(2); }));
  CISTERN_RETURN_IF_ERROR(Step("train", [this] { return RunWorker(); }));
  CISTERN_RETURN_IF_ERROR(
      Step("evaluate", [this] { return PredictTo(Path("predictions-2-servers.tsv")); }));
  CISTERN_RETURN_IF_ERROR(Step("save", [this] { return Save(); }));
  CISTERN_RETURN_IF_ERROR(Step("load", [this] { return Load(); }));
  CISTERN_RETURN_IF_ERROR(Step("compare", [this] { return Compare(); }));
  return result_;
}

}  // namespace

absl::StatusOr<DemoResult> RunDemo(const DemoOptions& options, const DemoCalls& calls) {
  return Demo(options, calls).Run();
}

nlohmann::ordered_json JsonOf(const DemoResult& result) {
  nlohmann::ordered_json json;
  json["dir"] = result.dir;
  json["steps"] = nlohmann::ordered_json::array();
  for (const DemoStep& step : result.steps) {
    json["steps"].push_back({{"name", step.name}, {"seconds", step.seconds}});
  }
  json["train"] = result.train;
  json["predictions"] = result.predictions;
  json["identical"] = true;  // else there is no result
  json["auc"] = result.auc;
  json["best_auc"] = result.best_auc;
  return json;
}

}  // namespace cistern::app
