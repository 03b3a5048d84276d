#include "worker/data/prepare/shard_set_writer.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/hash_text.h"
#include "worker/data/format/file_list.h"

namespace cistern::data {
namespace {

namespace fs = std::filesystem;

constexpr char kPackLock[] = "pack.lock";
constexpr char kFileList[] = "file_list.txt";

// Whether `name` is NAME-00000.tar, or that with .tmp.
bool IsShardName(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".tmp");
  if (!absl::ConsumeSuffix(&name, ".tar") || name.size() < 6) return false;
  const absl::string_view digits = name.substr(name.rfind('-') + 1);
  return digits.size() >= 5 && digits.size() < name.size() &&
         digits.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::Status CheckGroups(std::vector<LengthGroup> groups) {
  std::sort(groups.begin(), groups.end(),
            [](const LengthGroup& a, const LengthGroup& b) { return a.least < b.least; });
  for (size_t i = 1; i < groups.size(); ++i) {
    if (groups[i].least >= groups[i - 1].end) continue;
    return absl::InvalidArgumentError(absl::StrCat("length groups ", groups[i - 1].least, ":",
                                                   groups[i - 1].end, " and ", groups[i].least, ":",
                                                   groups[i].end, " overlap"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LengthGroup> ParseLengthGroup(const std::string& text) {
  const std::vector<std::string> bounds = absl::StrSplit(text, ':');
  LengthGroup group;
  if (bounds.size() == 2 && absl::SimpleAtoi(bounds[0], &group.least) &&
      absl::SimpleAtoi(bounds[1], &group.end) && group.least < group.end) {
    return group;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("length group '", text, "': expected two ascending numbers, as in 10:500"));
}

ShardSetWriter::ShardSetWriter(FileSystem& files, const ShardSetOptions& options)
    : files_(files), options_(options) {
  manifest_.plan = options.plan;
  manifest_.complete = false;
  for (const LengthGroup& lengths : options.groups) {
    Group& group = groups_.emplace_back();
    group.folder = absl::StrCat(lengths.least, "_", lengths.end, "/");
    group.lengths = lengths;
  }
  if (groups_.empty()) groups_.emplace_back().lengths = {0, UINT64_MAX};
}

absl::StatusOr<std::unique_ptr<ShardSetWriter>> ShardSetWriter::Create(
    FileSystem& files, const ShardSetOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckGroups(options.groups));
  std::unique_ptr<ShardSetWriter> writer(new ShardSetWriter(files, options));
  CISTERN_RETURN_IF_ERROR(writer->Take());
  return writer;
}

absl::Status ShardSetWriter::Take() {
  const std::string& folder = options_.folder;
  std::error_code error;
  const std::string manifest_path = Path(kShardManifestName);
  const bool exists = fs::exists(folder, error);
  if (exists && !fs::exists(manifest_path, error) && !fs::exists(Path(kPackLock), error) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error))) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " exists and holds no shards: name another folder"));
  }
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(folder));
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files_.Lock(Path(kPackLock));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::InvalidArgumentError(absl::StrCat("another process is packing to ", folder,
                                                   ": wait for it, or name another folder"));
  }
  CISTERN_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  absl::StatusOr<ShardManifest> before = ReadShardManifest(manifest_path);
  if (absl::IsNotFound(before.status())) return SaveManifest();
  CISTERN_RETURN_IF_ERROR(before.status());
  if (options_.overwrite) return RemoveEarlier(*before);
  if (before->complete) {
    return WithOptions(absl::InvalidArgumentError(
                           absl::StrCat(folder, " holds a complete set of ", before->shards.size(),
                                        " shards: name another folder, or overwrite it")),
                       {"overwrite"});
  }
  if (before->plan != options_.plan) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            folder,
            " holds shards of a stopped run with other input or options, so this run cannot "
            "continue it: repeat that run, or overwrite it")),
        {"overwrite"});
  }
  for (ShardManifest::Shard& shard : before->shards) {
    if (fs::file_size(Path(shard.name), error) == shard.bytes && !error) {
      earlier_.push_back(std::move(shard));
    }
  }
  return absl::OkStatus();
}

// Removes the shards that a manifest lists, and those that a killed run wrote after its manifest.
absl::Status ShardSetWriter::RemoveEarlier(ShardManifest manifest) {
  // A kill in here must leave a set that no run continues.
  manifest.complete = false;
  manifest.plan = "removed";
  CISTERN_RETURN_IF_ERROR(WriteShardManifest(files_, Path(kShardManifestName), manifest));
  std::set<std::string> folders = {""};
  for (const Group& group : groups_) folders.insert(group.folder);
  for (const ShardManifest::Shard& shard : manifest.shards) {
    folders.insert(shard.name.substr(0, shard.name.rfind('/') + 1));
  }
  for (const std::string& folder : folders) {
    const absl::StatusOr<std::vector<std::string>> names = files_.List(Path(folder));
    if (absl::IsNotFound(names.status())) continue;
    CISTERN_RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      if (!IsShardName(name) && name != kFileList) continue;
      CISTERN_RETURN_IF_ERROR(files_.Remove(Path(folder + name)));
    }
  }
  return SaveManifest();
}

ShardSetWriter::Group* ShardSetWriter::GroupOf(uint64_t length) {
  for (Group& group : groups_) {
    if (length >= group.lengths.least && length < group.lengths.end) return &group;
  }
  return nullptr;
}

absl::Status ShardSetWriter::Append(const std::string& key, uint64_t length,
                                    absl::string_view json) {
  Group* const group = GroupOf(length);
  if (group == nullptr) {
    Skip("length in no group", absl::StrCat("'", key, "' has length ", length));
    return absl::OkStatus();
  }
  const uint64_t bytes = TarShardWriter::MemberBytes(json.size());
  const bool is_open = !group->name.empty();
  const uint64_t bytes_after = group->bytes + bytes + TarShardWriter::kEndBytes;
  const bool too_large = options_.bytes_per_shard > 0 && bytes_after > options_.bytes_per_shard;
  if (is_open && (group->samples == options_.samples_per_shard || too_large)) {
    CISTERN_RETURN_IF_ERROR(CloseShard(group));
  }
  if (group->name.empty()) CISTERN_RETURN_IF_ERROR(OpenShard(group));
  ++group->samples;
  group->bytes += bytes;
  if (group->writer == nullptr) return absl::OkStatus();
  return group->writer->Append(absl::StrCat(key, ".json"), json);
}

void ShardSetWriter::Skip(const std::string& cause, const std::string& message) {
  auto it = std::find_if(manifest_.skipped.begin(), manifest_.skipped.end(),
                         [&](const ShardManifest::Skipped& one) { return one.cause == cause; });
  if (it == manifest_.skipped.end()) {
    it = manifest_.skipped.insert(it, {cause, 0, message});
  }
  ++it->samples;
}

const ShardManifest::Shard* ShardSetWriter::Earlier(const std::string& name) const {
  const auto it = std::find_if(earlier_.begin(), earlier_.end(),
                               [&](const ShardManifest::Shard& one) { return one.name == name; });
  return it == earlier_.end() ? nullptr : &*it;
}

absl::Status ShardSetWriter::OpenShard(Group* group) {
  group->name = absl::StrFormat("%s%s-%05d.tar", group->folder, options_.name, group->next++);
  group->samples = group->bytes = 0;
  if (Earlier(group->name) != nullptr) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(group->writer, TarShardWriter::Create(files_, Path(group->name)));
  return absl::OkStatus();
}

absl::Status ShardSetWriter::CloseShard(Group* group) {
  if (group->writer == nullptr) {
    const ShardManifest::Shard& earlier = *Earlier(group->name);
    if (earlier.samples != group->samples) {
      return WithOptions(absl::DataLossError(absl::StrCat(
                             "the stopped run packed ", earlier.samples, " samples into ",
                             Path(group->name), ", but the input now has ", group->samples,
                             " for it: the input changed; start over by overwriting it")),
                         {"overwrite"});
    }
    manifest_.shards.push_back(earlier);
  } else {
    CISTERN_RETURN_IF_ERROR(group->writer->Close());
    manifest_.shards.push_back(
        {group->name, group->samples, group->writer->bytes(), HashText(group->writer->xxh3())});
    group->writer.reset();
  }
  group->name.clear();
  // The manifest is written anew each time: rarely enough to cost little, often enough that a
  // stopped run loses a small part of its work.
  const size_t unsaved = manifest_.shards.size() - saved_shards_;
  return unsaved > manifest_.shards.size() / 32 ? SaveManifest() : absl::OkStatus();
}

absl::Status ShardSetWriter::SaveManifest() {
  ShardManifest manifest = manifest_;
  // Keeps shards of an earlier run that this run has not reached yet.
  for (const ShardManifest::Shard& shard : earlier_) {
    if (std::none_of(manifest_.shards.begin(), manifest_.shards.end(),
                     [&](const ShardManifest::Shard& one) { return one.name == shard.name; })) {
      manifest.shards.push_back(shard);
    }
  }
  saved_shards_ = manifest_.shards.size();
  return WriteShardManifest(files_, Path(kShardManifestName), manifest);
}

absl::Status ShardSetWriter::Close() {
  for (Group& group : groups_) {
    if (!group.name.empty()) CISTERN_RETURN_IF_ERROR(CloseShard(&group));
  }
  std::sort(
      manifest_.shards.begin(), manifest_.shards.end(),
      [](const ShardManifest::Shard& a, const ShardManifest::Shard& b) { return a.name < b.name; });
  std::vector<std::string> names;
  for (const ShardManifest::Shard& shard : manifest_.shards) names.push_back(shard.name);
  CISTERN_RETURN_IF_ERROR(WriteFileList(files_, Path(kFileList), names));
  manifest_.complete = true;
  earlier_.clear();
  CISTERN_RETURN_IF_ERROR(SaveManifest());
  return files_.Remove(Path(kPackLock));
}

}  // namespace cistern::data
