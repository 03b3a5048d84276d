#include "app/export/publish.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/time/clock.h"
#include "app/fleet/fleet_files.h"
#include "app/model/export_source.h"
#include "app/run/run_folder.h"
#include "app/state/commit_changes.h"
#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "common/base/fault_log.h"
#include "common/base/log.h"
#include "common/base/low_priority.h"
#include "common/base/steady_time.h"
#include "worker/export/serving/version_series.h"

namespace cistern::app {
namespace {

// Publishes the commits of one training into one serving folder.
//
// Threads: one at a time.
class Publisher {
 public:
  explicit Publisher(const PublishOptions& options)
      : options_(options), series_(&files_, options.version.out) {}

  // kNotFound: the training has not written its folder yet. Other errors are those of its flags.
  absl::Status Open() {
    ModelOptions model = options_.model;
    std::string place = options_.state;
    if (!options_.once) CISTERN_RETURN_IF_ERROR(CheckModelThere());
    CISTERN_RETURN_IF_ERROR(ResolveRunFolder(&model, &place));
    CISTERN_ASSIGN_OR_RETURN(config_, ReadModelConfig(model));
    CISTERN_ASSIGN_OR_RETURN(text_, ReadModelText(model, options_.version, place));
    if (options_.state.empty()) CISTERN_RETURN_IF_ERROR(OpenFleet());
    absl::StatusOr<std::unique_ptr<server::StateFolder>> state =
        options_.state.empty() ? FindState(*fleet_files_, fleet_files_->root())
                               : FindState(files_, options_.state);
    if (absl::IsNotFound(state.status()) && options_.once) {
      return WithFix(WithCode(state.status(), absl::StatusCode::kInvalidArgument),
                     "name the data_dir of servers, or the folder of a training run that keeps its "
                     "commits");
    }
    CISTERN_ASSIGN_OR_RETURN(state_, std::move(state));
    return absl::OkStatus();
  }

  // Publishes the newest commit if it is not published yet; nullopt if there is nothing to do.
  absl::StatusOr<std::optional<ServingWritten>> PublishNewest() {
    CISTERN_RETURN_IF_ERROR(CheckOutThere());
    for (;;) {
      CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state_->Commits());
      if (!commits.empty() && commits.back() < published_) return IsBehind(commits.back());
      if (commits.empty() || commits.back() == published_) return std::nullopt;
      auto written = PublishNewestOf(commits);
      if (written.ok()) return written;
      // The training may have removed the commit while it was read. Then there is a newer one.
      CISTERN_ASSIGN_OR_RETURN(const bool is_kept, state_->HasManifest(commits.back()));
      if (is_kept) return written;
    }
  }

  uint64_t published() const { return published_; }

  // The commit of the current version; nullopt if there is none that can be read.
  std::optional<uint64_t> Served() {
    const absl::StatusOr<std::optional<ServingVersion>> current = Current();
    return current.ok() && *current ? std::optional((*current)->commit) : std::nullopt;
  }

 private:
  // A training makes its folder, and later the model file in it.
  absl::Status CheckModelThere() const {
    std::error_code error;
    const std::string& path = options_.model.config;
    if (!std::filesystem::exists(path, error)) {
      return absl::NotFoundError(absl::StrCat(path, " is not there"));
    }
    if (!std::filesystem::is_directory(path, error) || IsRunFolder(path)) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(path, " has no ", kRunModelFile, " and metrics.jsonl of a training"));
  }

  // kNotFound: the servers do not answer yet, or have no tables yet.
  absl::Status OpenFleet() {
    fleet_files_.reset();
    absl::StatusOr<std::unique_ptr<FleetSession>> fleet = FleetSession::Open(options_.model.fleet);
    if (absl::IsUnavailable(fleet.status()) && !options_.once) {
      return WithCode(fleet.status(), absl::StatusCode::kNotFound);
    }
    CISTERN_ASSIGN_OR_RETURN(fleet_, std::move(fleet));
    if (!fleet_->client().durable()) {
      return WithOptions(WithFix(absl::InvalidArgumentError(
                                     absl::StrCat("the servers ", options_.model.fleet.servers,
                                                  " keep commits in memory only")),
                                 "start the servers with durable commits"),
                         {"servers", "cistern-server.durability"});
    }
    if (fleet_->client().schema().tables_size() == 0) {
      return absl::NotFoundError("the servers have no tables yet");
    }
    fleet_files_ = std::make_unique<FleetFiles>(fleet_->client());
    return absl::OkStatus();
  }

  // The training began anew, or is a restored backup. Versions do not go back.
  absl::Status IsBehind(uint64_t newest) const {
    return absl::AbortedError(absl::StrCat(
        state_->path(), " is at commit ", newest, ", behind commit ", published_, ", which ",
        options_.version.out, " serves; later commits are published, and to serve this one now, ",
        "publish into another folder, or export it"));
  }

  // A serving folder that has been there is not made anew: it may be on a disk that is away for a
  // moment, and a folder of that name would be in its way.
  absl::Status CheckOutThere() {
    CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(options_.version.out));
    if (!there && has_out_) {
      return absl::NotFoundError(
          absl::StrCat(options_.version.out,
                       " has disappeared; if it was removed on purpose, start "
                       "cistern publish again"));
    }
    has_out_ = has_out_ || there;
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<ServingWritten>> PublishNewestOf(
      const std::vector<uint64_t>& commits) {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<ServingVersion> previous, Previous());
    if (previous && published_ == 0 && previous->commit >= commits.back()) {
      CISTERN_RETURN_IF_ERROR(CheckSameTraining(*previous));
      published_ = previous->commit;
      const absl::Status whole = CheckSmallFiles(files_, options_.version.out, *previous);
      if (!absl::IsDataLoss(whole) || previous->commit > commits.back()) return std::nullopt;
      LogWarning(absl::StrCat("version ", previous->folder, " is damaged: ", whole.message(),
                              "; it is replaced by a whole one"));
      return Publish(commits.back(), std::nullopt);
    }
    return Publish(commits.back(), previous);
  }

  absl::StatusOr<std::optional<ServingWritten>> Publish(
      uint64_t commit, const std::optional<ServingVersion>& previous) {
    CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest manifest, ReadCommit(*state_, commit));
    CISTERN_ASSIGN_OR_RETURN(ServingWritten written, Write(manifest, previous));
    published_ = manifest.manifest.commit();
    return written;
  }

  // nullopt: there is none.
  absl::StatusOr<std::optional<ServingVersion>> Current() {
    const std::string& root = options_.version.out;
    const absl::StatusOr<ServingHead> head = ReadHead(files_, root);
    if (absl::IsNotFound(head.status())) return std::nullopt;
    CISTERN_RETURN_IF_ERROR(head.status());
    return ReadVersion(files_, root, head->folder, head->xxh3);
  }

  // The current version; nullopt if there is none that can be read.
  absl::StatusOr<std::optional<ServingVersion>> Previous() {
    absl::StatusOr<std::optional<ServingVersion>> version = Current();
    if (!absl::IsDataLoss(version.status()) && !absl::IsNotFound(version.status())) {
      return version;
    }
    LogWarning(absl::StrCat("the current version of ", options_.version.out, " cannot be read: ",
                            version.status().message(), "; a whole one is written"));
    return std::nullopt;
  }

  // Whether `version` was made from a commit of this training; nullopt if the training does not
  // keep a commit of that number.
  absl::StatusOr<std::optional<bool>> IsOfThisTraining(const ServingVersion& version) const {
    const absl::StatusOr<server::ParsedManifest> manifest = state_->ReadManifest(version.commit);
    if (absl::IsNotFound(manifest.status())) return std::nullopt;
    CISTERN_RETURN_IF_ERROR(manifest.status());
    return manifest->self_xxh3 == version.manifest_xxh3;
  }

  absl::Status CheckSameTraining(const ServingVersion& version) const {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<bool> same, IsOfThisTraining(version));
    if (same.value_or(true)) return absl::OkStatus();
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(options_.version.out, " serves commit ",
                                                version.commit, " of a different training than ",
                                                state_->path())),
        "publish into another folder, or export a first version of this training there: cistern "
        "export serving");
  }

  // Whether the changes since `version` can be read from the commits of this training.
  bool IsAncestor(const ServingVersion& version) const {
    if (version.commit == 0) return false;
    const absl::StatusOr<std::optional<bool>> same = IsOfThisTraining(version);
    return same.ok() && same->value_or(false);
  }

  // As changes of `previous` where possible, else as a whole.
  absl::StatusOr<ServingWritten> Write(const server::ParsedManifest& manifest,
                                       const std::optional<ServingVersion>& previous) {
    const ServingOptions options = ServingOptionsOf(options_.version);
    std::unique_ptr<CommittedModel> model;
    const bool same_form = previous && previous->precision == options.precision;
    bool complete = true;
    if (same_form && IsAncestor(*previous)) {
      CISTERN_ASSIGN_OR_RETURN(model, ReadCommitChanges(*state_, manifest, previous->commit));
      complete = model == nullptr;
    }
    if (complete) {
      CISTERN_ASSIGN_OR_RETURN(model, ReadAll(manifest.manifest.commit()));
    }
    CISTERN_RETURN_IF_ERROR(CheckModelFile(config_, *model));
    if (same_form) {
      const ServingChanges changes = {*previous, complete, options_.base_share};
      // With --once no later version would name a base that is written beside this one.
      absl::StatusOr<ServingWritten> written =
          options_.once ? WriteServingChanges(files_, config_, text_, *model, changes, options)
                        : series_.WriteChanges(config_, text_, *model, changes, options);
      // A damaged older version is replaced by a whole one.
      if (!absl::IsDataLoss(written.status())) return written;
      if (!complete) {
        CISTERN_ASSIGN_OR_RETURN(model, ReadAll(manifest.manifest.commit()));
      }
    }
    return WriteServingModel(files_, config_, text_, *model, options);
  }

  absl::StatusOr<std::unique_ptr<CommittedModel>> ReadAll(uint64_t commit) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SavedRows> rows,
                             SavedRows::Open(state_->files(), {state_->path(), commit}));
    ThreadPool pool(ThreadsOf(options_.model.threads));
    return ReadCommittedModel(*rows, pool);
  }

  PublishOptions options_;
  LocalFileSystem files_;
  model::ModelConfig config_;
  ModelText text_;
  std::unique_ptr<FleetSession> fleet_;  // if options_.state is empty
  std::unique_ptr<FleetFiles> fleet_files_;
  std::unique_ptr<server::StateFolder> state_;
  uint64_t published_ = 0;
  bool has_out_ = false;  // the serving folder has been there
  VersionSeries series_;  // last: it uses files_
};

// What is published, for messages.
std::string NameOfState(const PublishOptions& options) {
  return options.state.empty() ? "servers " + options.model.fleet.servers : options.state;
}

// What a publisher lives through: a folder that is away, a full disk, a damaged commit. Errors of
// the configuration do not pass.
class PassingFaults {
 public:
  explicit PassingFaults(const PublishOptions& options)
      : pause_(absl::Milliseconds(options.poll_ms)),
        log_(absl::StrCat("publishing ", NameOfState(options), " to ", options.version.out)) {}

  // The outcome of a look for a commit: OK if the publisher may go on. An error of the
  // configuration counts when it is seen twice: folders that come or go may look like one.
  absl::Status Report(const absl::Status& outcome) {
    const bool was_configuration = is_configuration_;
    is_configuration_ = absl::IsInvalidArgument(outcome);
    if (is_configuration_ && was_configuration) return outcome;
    if (!is_configuration_) log_.Report(outcome, "trying again");
    wait_ = outcome.ok() ? pause_ : std::min(std::max(2 * wait_, pause_), kLongest);
    return absl::OkStatus();
  }
  absl::Duration wait() const { return wait_; }

 private:
  static constexpr absl::Duration kLongest = absl::Seconds(5);
  const absl::Duration pause_;
  absl::Duration wait_ = pause_;  // before the next look
  bool is_configuration_ = false;
  FaultLog log_;
};

// Opens the folders of the training, and waits for those that are not there yet.
absl::Status AwaitTraining(const PublishOptions& options, const JobCalls& calls,
                           Publisher* publisher) {
  std::string said;
  while (calls.CheckStop().ok()) {
    const absl::Status opened = publisher->Open();
    if (options.once || !absl::IsNotFound(opened)) return opened;
    const std::string note = absl::StrCat("waiting for the training whose commits are kept in ",
                                          NameOfState(options), ": ", opened.message());
    if (note != said) calls.Note(note);
    said = note;
    SleepUnless(calls.stop, absl::Milliseconds(std::max<uint64_t>(options.poll_ms, 10)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Published> Publish(const PublishOptions& options, const JobCalls& calls,
                                  const OnPublished& published) {
  // A server may answer requests, and a training run, on the same machine.
  if (options.idle) {
    RunWhenIdle();
  } else {
    LowerPriority();
  }
  CISTERN_RETURN_IF_ERROR(CheckServingPlace(options.version));
  if (!(options.base_share >= 0)) {
    return WithFix(WithOptions(absl::InvalidArgumentError(
                                   absl::StrCat(options.base_share, " is not a share of the rows")),
                               {"base_share"}),
                   "give a number from 0 (every version is a whole one) on, such as 0.2");
  }
  Publisher publisher(options);
  CISTERN_RETURN_IF_ERROR(AwaitTraining(options, calls, &publisher));
  PassingFaults faults(options);
  Published result;
  bool has_looked = false;
  while (calls.CheckStop().ok()) {
    const SteadyTime start = std::chrono::steady_clock::now();
    const absl::StatusOr<std::optional<ServingWritten>> written = publisher.PublishNewest();
    // An export writes to the folder at this moment: it is done soon.
    if (absl::IsFailedPrecondition(written.status()) && !options.once) {
      SleepUnless(calls.stop, absl::Milliseconds(options.poll_ms));
      continue;
    }
    if (options.once) {
      CISTERN_RETURN_IF_ERROR(written.status());
    } else {
      CISTERN_RETURN_IF_ERROR(faults.Report(written.status()));
    }
    if (written.ok() && *written) {
      ++result.versions;
      if (published) published(**written, SecondsSince(start));
    } else if (written.ok() && !has_looked && !options.once) {
      calls.Note(publisher.published() == 0
                     ? absl::StrCat("waiting for the first commit of ", options.state)
                     : absl::StrCat(options.version.out, " serves commit ", publisher.published(),
                                    ", the newest; waiting for the next"));
    }
    has_looked = has_looked || written.ok();
    if (options.once) break;
    SleepUnless(calls.stop, faults.wait());
  }
  result.commit = publisher.Served();
  return result;
}

}  // namespace cistern::app
