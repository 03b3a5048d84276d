#include "server/service/file_service.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "common/base/log.h"
#include "common/base/names.h"
#include "common/base/secret.h"
#include "common/wire/call_peer.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/state_folder.h"
#include "server/saved_model/model_snapshot.h"

namespace cistern::server {
namespace {

// The durable commit of `pass`; without a number if the state of the pass is in memory only.
SavedCommit CommitOf(const CommitState& stage, PassId pass) {
  const DurableState* const durable = stage.durable();
  if (durable == nullptr || durable->dirty()) return {};
  const ParsedManifest newest = durable->manifest();
  if (newest.manifest.commit() == 0 || newest.manifest.pass() != pass) return {};
  return {newest.manifest.commit(), newest.self_xxh3};
}

constexpr uint64_t kMaxContentBytes = uint64_t{1} << 20;

constexpr absl::string_view kManifests = "manifest", kRowFiles = "data";

bool IsManifest(absl::string_view name) {
  return NumberOfName(name) > 0;
}
bool IsRowFile(absl::string_view name) {
  return ParseRowFileName(std::string(name)).has_value();
}

// A file that only readers of commits need. Claims are not among them.
bool IsOfCommits(absl::string_view name) {
  return absl::ConsumePrefix(&name, "manifest/")
             ? IsManifest(name)
             : absl::ConsumePrefix(&name, "data/") && IsRowFile(name);
}

}  // namespace

FileService::FileService(NodeState* state, FileSystem* files, std::string data_dir)
    : state_(state), data_dir_(std::move(data_dir)), files_(files, data_dir_) {}

absl::StatusOr<std::string> FileService::Folder(const std::string& name) {
  if (data_dir_.empty()) {
    return WithOptions(
        absl::FailedPreconditionError(absl::StrCat(
            "server ", state_->rank,
            " was started without a data_dir, so it cannot save or load; start it with one")),
        {"cistern-server.data_dir"});
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckName(name), "name of the saved model"));
  if (name == kStateName) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is where the servers keep their commits; choose another name"));
  }
  const std::string folder = PathBelow(data_dir_, name).text();
  // A link of that name would lead out of data_dir, so files_ will refuse all work there. Opening
  // any name inside the folder reveals it before the work begins.
  const absl::Status inside = files_.Open(folder + "/any").status();
  if (absl::IsInvalidArgument(inside)) {
    return absl::InvalidArgumentError(
        absl::StrCat(inside.message(),
                     "; the folder of a saved model is a folder in data_dir itself, and a "
                     "link is not followed: copy the model there"));
  }
  return folder;
}

absl::Status FileService::Save(const v1::SaveRequest& request, v1::SaveReply* reply) {
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, Folder(request.name()));
  // Commits wait; pulls and pushes of the next pass continue.
  absl::MutexLock job(&state_->job_mutex);
  {
    absl::ReaderMutexLock lock(&state_->tables_mutex);
    CISTERN_RETURN_IF_ERROR(state_->Check(IdentityOf(request.identity())));
    CISTERN_RETURN_IF_ERROR(state_->stage.CheckCommitted());
  }
  const PassId pass = state_->stage.committed();
  SaveOptions options = {request.mode(), request.format(), request.day()};
  options.commit = CommitOf(state_->stage, pass);
  if (request.has_instead_of_pass()) {
    // Looked up, not inserted: a caller may name any number of models.
    const auto own = save_tickets_.find(request.name());
    if (own == save_tickets_.end() || request.ticket() != own->second) {
      return absl::FailedPreconditionError(
          absl::StrCat("the saved model '", request.name(),
                       "' is not replaced: only the call that saved it may replace it, and a "
                       "finished model never "
                       "changes; choose another name"));
    }
    options.instead_of = request.instead_of_pass();
  }
  CISTERN_ASSIGN_OR_RETURN(const SaveTotals totals,
                           SaveStore(files_, state_->store, pass, folder, state_->pool, options));
  if (request.mode() == v1::BATCH) state_->FillCache("the save of a batch model");
  LogInfo(absl::StrCat("saved ", totals.rows, " rows of pass ", pass, " in ", folder, " for ",
                       CallPeer::Current()));
  // A ticket is needed only for the duration of one `cistern save`.
  constexpr size_t kMaxTickets = 256;
  if (save_tickets_.size() > kMaxTickets) save_tickets_.clear();
  reply->set_ticket(save_tickets_[request.name()] = NewSecret());
  reply->set_rows(totals.rows);
  reply->set_bytes(totals.bytes);
  reply->set_path(folder);
  reply->set_pass(pass);
  for (const std::string& name : totals.file_names) reply->add_files(name);
  return absl::OkStatus();
}

absl::Status FileService::Load(const v1::LoadRequest& request, v1::LoadReply* reply) {
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, Folder(request.name()));
  absl::MutexLock job(&state_->job_mutex);
  const CallIdentity caller = IdentityOf(request.identity());
  return state_->Replace(
      [&]() -> absl::Status {
        // A server without tables creates those of the model.
        CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(caller.cluster_id, caller.shard_map_hash));
        CISTERN_RETURN_IF_ERROR(state_->lease.Check(request.identity().secret()));
        CISTERN_RETURN_IF_ERROR(state_->stage.CheckChanges(request.changes()));
        if (state_->store.schema_hash() == 0) return state_->guard.CheckTerm(caller.term);
        return state_->guard.Check(caller, state_->store.schema_hash());
      },
      [&]() -> absl::Status {
        const LoadOptions options = {request.upgrade(),
                                     request.foreign(),
                                     {request.tables().begin(), request.tables().end()}};
        CISTERN_ASSIGN_OR_RETURN(const LoadTotals totals,
                                 LoadStore(files_, state_->store, folder, state_->pool, options));
        // On a durable server the next pass commits the load, under the same pass number.
        const bool durable = state_->stage.durable() != nullptr;
        state_->stage.Changed(request.changes(), nullptr);
        state_->store.set_days(totals.days);
        state_->FillCache("a load");
        state_->stage.Reset(durable && totals.pass > 0 ? totals.pass - 1 : totals.pass);
        LogInfo(absl::StrCat("loaded ", totals.rows, " rows of pass ", totals.pass, " from ",
                             folder, " for ", CallPeer::Current()));
        reply->set_rows(totals.rows);
        for (const v1::TableLeftOut& table : totals.left_out) *reply->add_left_out() = table;
        reply->set_committed_pass(state_->stage.committed());
        if (!totals.days.days().empty()) *reply->mutable_days() = totals.days;
        return absl::OkStatus();
      });
}

absl::Status FileService::ReadState(const v1::ReadStateRequest& request,
                                    v1::ReadStateReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  if (state_->stage.durable() == nullptr) {
    return absl::FailedPreconditionError(
        "this server keeps commits in memory only, so there are no files of commits");
  }
  const std::string path = absl::StrCat(StateFolderOf(data_dir_), "/", request.name());
  if (request.name() == kManifests || request.name() == kRowFiles) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(path));
    for (const std::string& name : names) {
      if (request.name() == kManifests ? IsManifest(name) : IsRowFile(name)) reply->add_names(name);
    }
    return absl::OkStatus();
  }
  if (!IsOfCommits(request.name())) {
    return absl::InvalidArgumentError(
        "not a file of a commit: a server sends only manifests and row files");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files_.Open(path));
  reply->set_file_bytes(file->bytes());
  if (request.offset() >= file->bytes()) return absl::OkStatus();
  const uint64_t size =
      std::min({request.size(), kMaxContentBytes, file->bytes() - request.offset()});
  reply->mutable_content()->resize(size);
  return file->Read(request.offset(), size, reply->mutable_content()->data());
}

}  // namespace cistern::server
