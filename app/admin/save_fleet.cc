#include "app/admin/save_fleet.h"

#include <memory>
#include <optional>
#include <set>

#include "absl/strings/str_join.h"
#include "app/fleet/fleet_files.h"
#include "app/fleet/held_model.h"
#include "common/saved_model/model_folder.h"
#include "worker/client/after_save.h"
#include "worker/train/jobs.h"

namespace cistern::app {
namespace {

// The passes that the servers have saved: one, unless a training run commits at the same time.
std::set<uint64_t> PassesOf(const std::vector<v1::SaveReply>& replies) {
  std::set<uint64_t> passes;
  for (const v1::SaveReply& reply : replies) passes.insert(reply.pass());
  return passes;
}

// Makes every server save the same committed pass. While a training run commits, some servers may
// still be one pass behind the others; then all save again.
absl::Status SaveOnePass(ParameterClient& client, const v1::SaveRequest& save,
                         const JobCalls& calls, std::vector<v1::SaveReply>* replies) {
  constexpr int kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    AmountCounter counter(calls, "saving", "servers");
    counter.Expect(replies->size());
    CISTERN_RETURN_IF_ERROR(
        client.ForEachServer([&](size_t rank, ControlPlane& server) -> absl::Status {
          v1::SaveRequest request = save;
          *request.mutable_identity() = client.identity();
          v1::SaveReply& reply = (*replies)[rank];
          if (attempt > 0) {
            request.set_instead_of_pass(reply.pass());
            request.set_ticket(reply.ticket());
          }
          reply.Clear();
          CISTERN_RETURN_IF_ERROR(server.Save(request, &reply));
          counter.Done();
          return absl::OkStatus();
        }));
    if (PassesOf(*replies).size() == 1) return absl::OkStatus();
  }
  return WithOptions(
      WithFix(absl::AbortedError(absl::StrCat(
                  "the servers have saved passes ", absl::StrJoin(PassesOf(*replies), " and "),
                  " in each of ", kAttempts,
                  " attempts: a training run commits faster than they save; the files in '",
                  save.name(), "' are not a state of the fleet")),
              "save under another name while no training runs, or make its passes longer"),
      {"name"});
}

absl::Status WithSaveFix(const absl::Status& status, const FleetOptions& fleet) {
  if (absl::IsAlreadyExists(status)) {
    return WithOptions(WithFix(status, "choose another name"), {"name"});
  }
  if (absl::IsResourceExhausted(status)) {
    return WithOptions(WithFix(status,
                               "free space under the server's data_dir and save under another "
                               "name; the servers' state is unchanged"),
                       {"name"});
  }
  return WithFleetFix(status, fleet);
}

}  // namespace

uint64_t SavedFleet::rows() const {
  uint64_t sum = 0;
  for (const SavedPart& part : parts) sum += part.rows;
  return sum;
}

uint64_t SavedFleet::bytes() const {
  uint64_t sum = 0;
  for (const SavedPart& part : parts) sum += part.bytes;
  return sum;
}

absl::StatusOr<SavedFleet> SaveFleet(const SaveFleetOptions& options, const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckDay(options.day));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(options.fleet));
  ParameterClient& client = fleet->client();
  v1::SaveRequest save;
  save.set_name(options.name);
  save.set_mode(options.mode);
  save.set_day(static_cast<uint32_t>(options.day));
  *save.mutable_format() = options.format;
  // No other writer may commit between the save and the reset of the saved rows.
  if (options.mode != v1::ALL) CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  std::vector<v1::SaveReply> replies(client.servers().size());
  const absl::Status saved = SaveOnePass(client, save, calls, &replies);
  if (!saved.ok()) return WithSaveFix(saved, options.fleet);
  if (options.mode != v1::ALL) {
    CISTERN_RETURN_IF_ERROR(WithFleetFix(
        AddContext(UpdateAfterSave(client, options.mode, save.day()),
                   absl::StrCat("the files of '", options.name,
                                "' are saved, but the statistics of their rows were not reset")),
        options.fleet));
  }
  SavedFleet result;
  result.pass = replies[0].pass();
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    const v1::SaveReply& reply = replies[rank];
    result.parts.push_back({client.servers()[rank].name, reply.path(), reply.rows(), reply.bytes(),
                            static_cast<uint64_t>(reply.files_size())});
  }
  return result;
}

absl::StatusOr<SavedPart> SaveFleetHere(const FleetOptions& fleet_options,
                                        const std::string& folder, PassId* pass) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(folder));
  if (exists) {
    return WithOptions(WithFix(absl::AlreadyExistsError(absl::StrCat(folder, " already exists")),
                               "choose another folder"),
                       {"to"});
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(fleet_options));
  ParameterClient& client = fleet->client();
  CISTERN_RETURN_IF_ERROR(WithFleetFix(client.ClaimTerm(), fleet_options));
  CISTERN_RETURN_IF_ERROR(
      WithFleetFix(SaveModel(files, client, folder, CommitPlace::kInside), fleet_options));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(files, folder));
  *pass = parts[0].pass;
  SavedPart saved;
  saved.path = folder;
  saved.files = parts[0].files.size();
  for (const ModelFile& file : parts[0].files) {
    saved.rows += file.rows;
    saved.bytes += file.bytes;
  }
  return saved;
}

absl::StatusOr<FleetCommit> CommitOfFleet(const FleetOptions& options) {
  auto local = std::make_unique<LocalFileSystem>();
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<FleetSession> fleet, FleetSession::Open(options));
  ParameterClient& client = fleet->client();
  if (const std::optional<RowsPlace> place = LocalCommitOf(*local, client)) {
    return FleetCommit{std::move(fleet), std::move(local),
                       absl::StrCat(place->path, "@", place->commit)};
  }
  if (!client.durable()) {
    return WithOptions(
        WithFix(absl::FailedPreconditionError("what has changed since is read from the row files "
                                              "of commits, and these servers keep none"),
                "start the servers with durable commits, or save the whole model"),
        {"since", "cistern-server.durability"});
  }
  auto files = std::make_unique<FleetFiles>(client);
  std::string root = files->root();
  return FleetCommit{std::move(fleet), std::move(files), std::move(root)};
}

}  // namespace cistern::app
