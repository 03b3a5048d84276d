#include "worker/data/format/tar_reader.h"

#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "common/base/check.h"
#include "common/io/file.h"
#include "worker/data/format/shard_manifest.h"
#include "worker/data/format/tar_archive.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

// The groups of members of one shard.
class TarShard {
 public:
  // The members of a group that are read.
  struct Group {
    std::string key;
    bool has_json = false, has_cls = false;
    std::string json, cls;
  };

  static absl::StatusOr<std::unique_ptr<TarShard>> Open(const std::string& path) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TarArchive> archive, TarArchive::Open(path));
    return std::unique_ptr<TarShard>(new TarShard(std::move(archive)));
  }

  // Moves to a byte that next_begin() returned for this shard; false, with no change, if it can
  // only be read forward. Requires that nothing was read.
  absl::StatusOr<bool> Seek(uint64_t byte) { return archive_->Seek(byte); }
  bool has_begun() const { return begun_; }
  // The byte at which the next group begins; none at the end. Requires has_begun.
  std::optional<uint64_t> next_begin() const {
    return at_end_ ? std::nullopt : std::optional(archive_->member_begin());
  }

  // Reads the next group; false at the end. contents: false leaves json and cls empty.
  absl::StatusOr<bool> Next(bool contents, Group* group) {
    if (!begun_) CISTERN_RETURN_IF_ERROR(Advance());
    if (at_end_) return false;
    group->key = key_;
    group->has_json = group->has_cls = false;
    while (!at_end_ && key_ == group->key) {
      if (extension_ == "json") {
        CISTERN_RETURN_IF_ERROR(Take(contents, *group, &group->has_json, &group->json));
      } else if (extension_ == "cls") {
        CISTERN_RETURN_IF_ERROR(Take(contents, *group, &group->has_cls, &group->cls));
      }
      CISTERN_RETURN_IF_ERROR(Advance());
    }
    if (group->has_json) return true;
    return absl::DataLossError(absl::StrCat("'", group->key, "' has no member .json"));
  }

 private:
  explicit TarShard(std::unique_ptr<TarArchive> archive) : archive_(std::move(archive)) {}

  // Moves to the next member that is part of a sample.
  absl::Status Advance() {
    begun_ = true;
    TarArchive::Member member;
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, archive_->Next(&member));
      at_end_ = !found;
      if (!found) return absl::OkStatus();
      absl::string_view key, extension;
      if (!SplitMemberName(member.name, &key, &extension)) continue;
      key_ = std::string(key);
      extension_ = absl::AsciiStrToLower(extension);
      return absl::OkStatus();
    }
  }

  absl::Status Take(bool contents, const Group& group, bool* has, std::string* text) {
    if (*has) {
      return absl::DataLossError(absl::StrCat("'", group.key, "' has two members .", extension_));
    }
    *has = true;
    if (!contents) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const absl::string_view bytes, archive_->Contents());
    text->assign(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  const std::unique_ptr<TarArchive> archive_;
  bool begun_ = false, at_end_ = false;
  std::string key_, extension_;  // of the current member
};

class TarReader : public SampleReader {
 public:
  TarReader(const TarSampleOptions& options, const std::vector<std::string>& paths)
      : inputs_(options.shape.slot_nums.size()), samples_(options), places_(options.places) {
    for (const std::string& path : paths) files_.push_back({path});
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_CHECK(block->sparse.size() == inputs_);
    size_t done = 0;
    while (done < max_samples && at_ < files_.size()) {
      CISTERN_RETURN_IF_ERROR(OpenShard());
      const absl::StatusOr<bool> read = ReadSample(block);
      if (!read.ok()) return InSample(read.status());
      if (*read) {
        ++record_;
        ++done;
      } else {
        EndShard();
      }
    }
    return done;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    uint64_t done = 0;
    while (done < max_samples && at_ < files_.size()) {
      if (shard_ == nullptr && PassOverShard(max_samples - done)) {
        done += record_;
        EndShard();
        continue;
      }
      if (shard_ == nullptr) {
        CISTERN_RETURN_IF_ERROR(OpenShard());
        CISTERN_RETURN_IF_ERROR(SeekTowards(max_samples - done));
        done += record_;
        if (done == max_samples) break;
      }
      const absl::StatusOr<bool> found = shard_->Next(/*contents=*/false, &group_);
      if (!found.ok()) return InSample(found.status());
      record_ += *found;
      done += *found;
      if (!*found) EndShard();
    }
    NotePlace();
    return done;
  }

  std::string PlaceOf(uint64_t sample) const override { return PlaceAmong(files_, sample); }

 private:
  struct File {
    std::string path;
    uint64_t samples = std::numeric_limits<uint64_t>::max();  // known once it is read
  };

  absl::Status OpenShard() {
    if (shard_ != nullptr) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(shard_, TarShard::Open(files_[at_].path));
    return absl::OkStatus();
  }

  // Moves to the last known place at or before sample `target` of the shard that was just opened.
  absl::Status SeekTowards(uint64_t target) {
    if (places_ == nullptr) return absl::OkStatus();
    const auto place = places_->AtOrBefore(files_[at_].path, target);
    if (!place) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const bool found, shard_->Seek(place->byte));
    if (found) record_ = place->record;
    return absl::OkStatus();
  }

  void NotePlace() {
    if (places_ == nullptr || shard_ == nullptr || record_ == 0 || !shard_->has_begun()) return;
    if (const auto byte = shard_->next_begin()) places_->Add(files_[at_].path, {record_, *byte});
  }

  void EndShard() {
    files_[at_++].samples = record_;
    record_ = 0;
    shard_.reset();
  }

  // Whether the whole next shard has at most `most` samples by its manifest; then sets record_.
  bool PassOverShard(uint64_t most) {
    const std::optional<uint64_t> samples = manifests_.SamplesOf(files_[at_].path);
    if (!samples || *samples > most) return false;
    record_ = *samples;
    return true;
  }

  absl::StatusOr<bool> ReadSample(SampleBlock* block) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, shard_->Next(/*contents=*/true, &group_));
    if (!found) return false;
    const absl::Status status =
        samples_.Append(group_.json, group_.has_cls ? &group_.cls : nullptr, block);
    if (!status.ok()) return AddContext(status, absl::StrCat("'", group_.key, "'"));
    return true;
  }

  absl::Status InSample(const absl::Status& status) const {
    return AddContext(status, absl::StrCat(files_[at_].path, ": sample ", record_));
  }

  const size_t inputs_;
  TarSampleReader samples_;
  RecordPlaces* const places_;  // null: none
  ShardManifests manifests_;
  std::vector<File> files_;
  size_t at_ = 0;        // index of the current shard
  uint64_t record_ = 0;  // its next sample
  std::unique_ptr<TarShard> shard_;
  TarShard::Group group_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenTar(const TarSampleOptions& options,
                                                      const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!IsRemote(path)) CISTERN_RETURN_IF_ERROR(OpenFile(path).status());
  }
  return std::make_unique<TarReader>(options, paths);
}

}  // namespace cistern::data
