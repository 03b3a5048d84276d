#include "app/diagnose/bundle.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "app/diagnose/local_processes.h"
#include "app/diagnose/secrets.h"
#include "app/fleet/fleet_status.h"
#include "common/base/version.h"
#include "common/http/metrics_page.h"
#include "common/io/new_file.h"

namespace cistern::app {
namespace {

namespace fs = std::filesystem;

// Of the end of a log, and of a run's metrics.jsonl.
constexpr uint64_t kMaxEndBytes = 1 << 20;

// The files of a run that say what it was and how it went (docs/formats.md, run folder).
constexpr const char* kRunFiles[] = {"run.json", "model.json", "evaluation.json", "metrics.jsonl"};

// A name of one word for a place: "host1_7700".
std::string WordOf(absl::string_view place) {
  return absl::StrReplaceAll(place, {{"/", "_"}, {":", "_"}, {"[", ""}, {"]", ""}});
}

class Collector {
 public:
  explicit Collector(const BundleOptions& options) : options_(options) {}

  absl::StatusOr<Bundle> Do() {
    CISTERN_RETURN_IF_ERROR(MakeFolder());
    for (const BundleText& text : options_.texts) Add(text.name, text.text);
    if (!options_.servers.empty()) AddServers();
    for (const std::string& place : options_.metrics) AddMetrics(place);
    for (const std::string& run : options_.runs) AddRun(run);
    for (const std::string& log : options_.logs) AddEnd("logs", log, log);
    AddProcesses();
    Add("README.txt", Readme());
    CISTERN_RETURN_IF_ERROR(failed_);
    return std::move(bundle_);
  }

 private:
  absl::Status MakeFolder() {
    const auto with_option = [](const absl::Status& status) {
      return WithOptions(status, {"out"});
    };
    if (options_.out.empty()) {
      return with_option(absl::InvalidArgumentError("the diagnosis needs a folder"));
    }
    CISTERN_ASSIGN_OR_RETURN(const bool taken, files_.Exists(options_.out));
    if (taken) {
      return WithFix(
          with_option(absl::InvalidArgumentError(absl::StrCat(options_.out, " exists already"))),
          "name a new folder");
    }
    const absl::Status made = files_.MakeFolders(options_.out);
    return made.ok() ? made : with_option(WithCode(made, absl::StatusCode::kInvalidArgument));
  }

  // Writes a file; the first error ends the collection.
  void Add(const std::string& name, absl::string_view text) {
    if (!failed_.ok()) return;
    failed_ = [&]() -> absl::Status {
      const std::string clean = WithoutSecrets(text);
      CISTERN_RETURN_IF_ERROR(WriteWhole(files_, absl::StrCat(options_.out, "/", name), clean));
      bundle_.files.push_back({name, clean.size()});
      return absl::OkStatus();
    }();
  }

  void LeaveOut(const std::string& what, const absl::Status& why) {
    const std::string fix = FixOf(why).empty() ? "" : absl::StrCat(" (", FixOf(why), ")");
    bundle_.left_out.push_back(WithoutSecrets(absl::StrCat(what, ": ", why.message(), fix)));
  }

  void AddServers() {
    FleetStatusOptions ask;
    ask.servers = options_.servers;
    ask.tls = options_.tls;
    ask.timeout = options_.timeout;
    const absl::StatusOr<FleetStatus> status = AskFleet(ask);
    if (!status.ok()) return LeaveOut("the state of the servers", status.status());
    for (const ServerState& server : status->servers) {
      if (!server.reached.ok()) LeaveOut("server " + server.address, server.reached);
    }
    Add("servers.json", JsonOf(*status).dump(2) + "\n");
  }

  void AddMetrics(const std::string& place) {
    const absl::StatusOr<std::string> page =
        ReadMetricsPage(place, absl::Seconds(options_.timeout));
    if (!page.ok()) return LeaveOut("figures of " + place, page.status());
    Add(absl::StrCat("metrics/", WordOf(place), ".txt"), *page);
  }

  void AddRun(const std::string& run) {
    const std::string folder = absl::StrCat("runs/", WordOf(run));
    size_t found = 0;
    for (const char* name : kRunFiles) {
      const std::string path = absl::StrCat(run, "/", name);
      const absl::StatusOr<bool> exists = files_.Exists(path);
      if (exists.ok() && !*exists) continue;  // not every run has all of them
      AddEnd(folder, name, path);
      ++found;
    }
    if (found == 0) {
      LeaveOut("run " + run, absl::NotFoundError("the folder has none of the files of a run"));
    }
  }

  // Adds the end of a file, from the start of a line.
  void AddEnd(const std::string& folder, const std::string& name, const std::string& path) {
    const absl::StatusOr<std::string> text = [&]() -> absl::StatusOr<std::string> {
      CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files_.Open(path));
      const uint64_t bytes = std::min(file->bytes(), kMaxEndBytes), from = file->bytes() - bytes;
      std::string end(bytes, '\0');
      CISTERN_RETURN_IF_ERROR(file->Read(from, bytes, end.data()));
      if (from > 0) end.erase(0, end.find('\n') + 1);
      return end;
    }();
    if (!text.ok()) return LeaveOut(path, text.status());
    Add(absl::StrCat(folder, "/", WordOf(name)), *text);
  }

  void AddProcesses() {
    for (const LocalProcess& process : LocalProcesses()) {
      const std::string name = absl::StrCat("processes/", process.name, "-", process.pid);
      const absl::StatusOr<std::string> text = DescribeProcess(process.pid);
      if (!text.ok()) continue;  // it has just ended
      Add(name + ".txt", *text);
      if (!options_.stacks) continue;
      const absl::StatusOr<std::string> stacks = StacksOf(process.pid, options_.out);
      std::error_code ignored;
      fs::remove(options_.out + "/gdb.log", ignored);
      if (stacks.ok()) {
        Add(name + "-stacks.txt", *stacks);
      } else {
        LeaveOut(absl::StrCat("stacks of process ", process.pid), stacks.status());
      }
    }
  }

  std::string Readme() const {
    std::string text = absl::StrCat(
        "Facts about a fault of Cistern ", kVersion, ", collected at ",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()), ".\n\n",
        "Values that look like secrets are replaced by [removed]. Read the files before you send "
        "them:\nhosts, paths, and names of columns are in them.\n\nFiles:\n");
    for (const Bundle::File& file : bundle_.files) absl::StrAppend(&text, "  ", file.name, "\n");
    if (!bundle_.left_out.empty()) absl::StrAppend(&text, "\nLeft out:\n");
    for (const std::string& line : bundle_.left_out) absl::StrAppend(&text, "  ", line, "\n");
    return text;
  }

  const BundleOptions& options_;
  LocalFileSystem files_;
  Bundle bundle_;
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<Bundle> CollectBundle(const BundleOptions& options) {
  return Collector(options).Do();
}

}  // namespace cistern::app
