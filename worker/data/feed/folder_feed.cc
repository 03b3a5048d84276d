#include "worker/data/feed/folder_feed.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/steady_time.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/remote_tree.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A look at an object store is a request for each thousand names.
constexpr double kRemoteLookSeconds = 1;

bool IsUnfinished(const std::string& name) {
  if (name.empty() || name[0] == '.' || name[0] == '_') return true;
  for (const char* ending : {".tmp", ".part", ".crc", ".inprogress"}) {
    if (absl::EndsWith(name, ending)) return true;
  }
  return false;
}

double AgeOf(fs::file_time_type time) {
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - time).count();
}

struct FileSeen {
  uint64_t bytes = 0;
  double age = 0;  // seconds since it was written; 0 if that is not known
};

// A file below a folder of this machine or below a remote path.
std::string PathBelow(const std::string& folder, const std::string& name) {
  return IsRemote(folder) ? RemoteChild(folder, name) : folder + "/" + name;
}

// The size of a file now. kNotFound: it is not there; otherwise it cannot be known.
absl::StatusOr<uint64_t> BytesOf(const std::string& path) {
  if (IsRemote(path)) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<RemoteEntry> found, ListRemote(path));
    if (found.size() == 1 && found[0].name.empty()) return found[0].bytes;
    return absl::NotFoundError("there is no such object");
  }
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (!error) return bytes;
  return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(error.message())
                                                       : absl::UnavailableError(error.message());
}

// The complete files of a folder that belong to a partition, by their names below it.
//
// Threads: one at a time.
class FolderLook {
 public:
  explicit FolderLook(const FolderFeedOptions& options, uint32_t partition)
      : options_(options), partition_(partition) {}

  absl::StatusOr<std::map<std::string, FileSeen>> Look() const {
    if (IsRemote(options_.folder)) return LookRemote();
    std::map<std::string, FileSeen> files;
    CISTERN_RETURN_IF_ERROR(Add("", &files));
    return files;
  }

 private:
  bool IsMine(const std::string& path) const {
    return XXH3_64bits(path.data(), path.size()) % options_.partitions == partition_;
  }

  // Objects appear whole, so one that is listed is complete.
  absl::StatusOr<std::map<std::string, FileSeen>> LookRemote() const {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<RemoteEntry> found, ListRemote(options_.folder));
    std::set<std::string> marked;  // "" and "a/b/"
    for (const RemoteEntry& entry : found) {
      const size_t name = entry.name.rfind('/') + 1;  // 0 if it has no slash
      if (entry.name.substr(name) == "_SUCCESS") marked.insert(entry.name.substr(0, name));
    }
    std::map<std::string, FileSeen> files;
    for (const RemoteEntry& entry : found) {
      const std::vector<std::string> names = absl::StrSplit(entry.name, '/');
      if (std::any_of(names.begin(), names.end(), IsUnfinished) || !IsMine(entry.name)) continue;
      const std::string below = entry.name.substr(0, entry.name.rfind('/') + 1);
      if (options_.completes == FileCompletes::kByMarker && marked.count(below) == 0) continue;
      files[entry.name].bytes = entry.bytes;
    }
    return files;
  }

  // below: "" or "a/b/". Files that vanish meanwhile are not there.
  absl::Status Add(const std::string& below, std::map<std::string, FileSeen>* files) const {
    std::error_code error;
    const std::string folder = options_.folder + "/" + below;
    fs::directory_iterator it(folder, error);
    if (error && (below.empty() || error != std::errc::no_such_file_or_directory)) {
      return absl::UnavailableError(
          absl::StrCat("cannot list ", folder, ": ", error.message(), "; check that it exists"));
    }
    const bool marked =
        options_.completes != FileCompletes::kByMarker || fs::exists(folder + "_SUCCESS", error);
    for (; it != fs::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (IsUnfinished(name)) continue;
      if (it->is_directory(error)) {
        CISTERN_RETURN_IF_ERROR(Add(absl::StrCat(below, name, "/"), files));
        continue;
      }
      if (!marked || !it->is_regular_file(error)) continue;
      const std::string path = below + name;
      if (!IsMine(path)) continue;
      FileSeen seen;
      seen.bytes = it->file_size(error);
      if (error) continue;
      seen.age = AgeOf(it->last_write_time(error));
      if (error) continue;
      if (options_.completes == FileCompletes::kByAge && seen.age < options_.age_seconds) continue;
      (*files)[path] = seen;
    }
    return absl::OkStatus();
  }

  const FolderFeedOptions& options_;
  const uint32_t partition_;
};

class FolderPartition : public FeedPartition {
 public:
  FolderPartition(const FolderFeedOptions& options, uint32_t partition)
      : options_(options), look_(options_, partition) {}

  absl::Status MoveTo(const std::string& place);

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override;
  absl::Status ReadRange(const std::string& range, SampleBlock* block) override;
  std::string TakeRange() override;
  std::string place() const override;
  FeedLag lag() const override { return lag_; }

 private:
  struct Piece {
    std::string name;
    uint64_t first = 0, count = 0;  // rows
  };

  // Opens the next file that is not read; false if there is none.
  absl::StatusOr<bool> OpenNext();
  // Opens a file at its first row. kDataLoss: it is not there. bytes: nullopt, or its known size.
  absl::Status OpenFile(const std::string& name, std::optional<uint64_t> bytes);
  absl::Status SkipTo(uint64_t row);
  // Reads at most `most` samples of the open file, and closes it after the last one.
  absl::StatusOr<size_t> ReadOpen(size_t most, SampleBlock* block);
  absl::Status CloseFile();
  // Looks at the folder, unless that was done a moment ago.
  absl::Status Look();
  void NoteLate(const std::map<std::string, FileSeen>& files);
  bool IsRead(const std::string& name) const { return name <= floor_ || recent_.count(name) > 0; }
  std::string PathOf(const std::string& name) const { return PathBelow(options_.folder, name); }

  const FolderFeedOptions options_;
  const FolderLook look_;
  std::deque<std::pair<std::string, FileSeen>> unread_;  // of the last look
  std::optional<SteadyTime> looked_;                     // when that was
  std::string floor_;                                    // all names up to it count as read
  std::set<std::string> recent_;                         // names after it that are read
  std::set<std::string> known_;                          // names up to it that are in the folder
  // The open file.
  std::string name_;
  uint64_t row_ = 0, bytes_ = 0;
  SteadyTime written_;                    // when it was
  std::unique_ptr<SampleReader> reader_;  // null: no file is open
  SampleBlock ahead_;                     // at most one sample, before what reader_ reads next
  absl::Status ahead_error_;              // in its place
  std::vector<Piece> pieces_;             // since TakeRange
  FeedLag lag_;
};

absl::Status WrongPlace(const std::string& place) {
  return absl::DataLossError(absl::StrCat("'", place, "' is not a place in a folder"));
}

absl::Status FolderPartition::MoveTo(const std::string& place) {
  if (place.empty()) return absl::OkStatus();
  const Json json = Json::parse(place, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("through", Json()).is_string() ||
      !json.value("read", Json()).is_array()) {
    return WrongPlace(place);
  }
  floor_ = json["through"];
  for (const Json& name : json["read"]) {
    if (!name.is_string()) return WrongPlace(place);
    recent_.insert(name.get<std::string>());
  }
  if (!json.contains("file")) return absl::OkStatus();
  if (!json["file"].is_string() || !json.value("row", Json()).is_number_unsigned() ||
      !json.value("bytes", Json()).is_number_unsigned()) {
    return WrongPlace(place);
  }
  CISTERN_RETURN_IF_ERROR(OpenFile(json["file"].get<std::string>(), json["bytes"].get<uint64_t>()));
  return SkipTo(json["row"].get<uint64_t>());
}

absl::Status FolderPartition::OpenFile(const std::string& name, std::optional<uint64_t> bytes) {
  const absl::StatusOr<uint64_t> now = BytesOf(PathOf(name));
  if (!now.ok()) {
    return absl::DataLossError(absl::StrCat(
        PathOf(name), ": is partly read, but cannot be opened: ", now.status().message(),
        "; restore it until the next commit is past it"));
  }
  if (bytes && *bytes != *now) {
    return absl::DataLossError(absl::StrCat(
        PathOf(name), ": holds ", *now, " bytes, but held ", *bytes,
        " when it was read: files must not change once they are complete; restore it"));
  }
  CISTERN_ASSIGN_OR_RETURN(reader_, options_.open(PathOf(name)));
  ahead_ = {};
  ahead_error_ = absl::OkStatus();
  name_ = name;
  row_ = 0;
  bytes_ = *now;
  return absl::OkStatus();
}

absl::Status FolderPartition::SkipTo(uint64_t row) {
  SampleBlock scratch;
  scratch.Reset(0);
  CISTERN_ASSIGN_OR_RETURN(row_, reader_->Skip(row, &scratch));
  if (row_ == row) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(PathOf(name_), ": holds ", row_, " rows, but ", row,
                   " were read: files must not change once they are complete; restore it"));
}

absl::StatusOr<size_t> FolderPartition::Read(size_t max_samples, SampleBlock* block) {
  size_t got = 0;
  while (got < max_samples) {
    if (reader_ == nullptr) {
      CISTERN_ASSIGN_OR_RETURN(const bool opened, OpenNext());
      if (!opened) break;
    }
    CISTERN_ASSIGN_OR_RETURN(const size_t rows, ReadOpen(max_samples - got, block));
    got += rows;
  }
  lag_.messages = unread_.size() + (reader_ != nullptr ? 1 : 0);
  if (got > 0) lag_.seconds = SecondsSince(written_);
  if (lag_.messages == 0) lag_.seconds.reset();
  return got;
}

absl::StatusOr<size_t> FolderPartition::ReadOpen(size_t most, SampleBlock* block) {
  const size_t before = block->size;
  if (ahead_.size > 0) block->Append(ahead_, 0, ahead_.size);
  absl::Status read = std::exchange(ahead_error_, absl::OkStatus());
  if (read.ok() && ahead_.size < most) {
    read = reader_->Read(most - ahead_.size, block).status();
  }
  const size_t rows = block->size - before;
  if (rows > 0) {
    if (!pieces_.empty() && pieces_.back().name == name_) {
      pieces_.back().count += rows;
    } else {
      pieces_.push_back({name_, row_, rows});
    }
    row_ += rows;
  }
  ahead_.Reset(block->sparse.size());
  if (!read.ok()) {
    if (options_.skips == nullptr || !options_.skips(PathOf(name_), read)) return read;
    CISTERN_RETURN_IF_ERROR(CloseFile());  // what was read before the bad row stays
    return rows;
  }
  // A place at the end of a file would need the file again, which may be deleted once it is read.
  ahead_error_ = reader_->Read(1, &ahead_).status();
  if (ahead_error_.ok() && ahead_.size == 0) CISTERN_RETURN_IF_ERROR(CloseFile());
  return rows;
}

// A file that was still written when it was read would lose its last rows.
absl::Status FolderPartition::CloseFile() {
  if (name_.empty()) return absl::OkStatus();
  reader_ = nullptr;
  const absl::StatusOr<uint64_t> now = BytesOf(PathOf(name_));
  if (now.ok() && *now != bytes_) {
    return absl::DataLossError(absl::StrCat(
        PathOf(name_), ": grew from ", bytes_, " to ", *now,
        " bytes while it was read: write files under another name and rename them when they are "
        "complete, or set cistern.stream.complete to \"age\""));
  }
  recent_.insert(std::exchange(name_, ""));
  row_ = bytes_ = 0;
  while (recent_.size() > kRecentFiles) {
    floor_ = *recent_.begin();
    recent_.erase(recent_.begin());
    known_.insert(floor_);  // which the folder may still hold
  }
  return absl::OkStatus();
}

absl::Status FolderPartition::Look() {
  if (looked_ && SecondsSince(*looked_) < options_.look_seconds) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const auto files, look_.Look());
  NoteLate(files);
  looked_ = std::chrono::steady_clock::now();
  for (const auto& [name, file] : files) {
    if (!IsRead(name)) unread_.emplace_back(name, file);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FolderPartition::OpenNext() {
  while (true) {
    if (unread_.empty()) CISTERN_RETURN_IF_ERROR(Look());
    if (unread_.empty()) return false;
    const auto [name, file] = std::move(unread_.front());
    unread_.pop_front();
    written_ = *looked_ - std::chrono::duration_cast<SteadyTime::duration>(
                              std::chrono::duration<double>(file.age));
    bytes_ = file.bytes;
    absl::Status opened;
    if (file.bytes > 0) opened = OpenFile(name, std::nullopt);
    if (opened.ok() && file.bytes > 0) return true;
    if (!opened.ok()) {
      const absl::StatusOr<uint64_t> now = BytesOf(PathOf(name));
      if (absl::IsNotFound(now.status())) continue;  // removed before anybody read it
      if (options_.skips == nullptr || !options_.skips(PathOf(name), opened)) return opened;
      bytes_ = now.value_or(file.bytes);
    }
    name_ = name;
    CISTERN_RETURN_IF_ERROR(CloseFile());
  }
}

// Files up to floor_ count as read. One that no earlier look saw has come too late. Which ones came
// while nobody looked is not known.
void FolderPartition::NoteLate(const std::map<std::string, FileSeen>& files) {
  std::set<std::string> known;
  for (const auto& [name, file] : files) {
    if (name > floor_) break;
    known.insert(name);
    if (known_.count(name) > 0 || !looked_ || options_.status == nullptr) continue;
    options_.status->Note(absl::StrCat(
        PathOf(name), ": came too late and is not read, because more than ", kRecentFiles,
        " files with later names were; train on it as more data, or give it a later name"));
  }
  known_ = std::move(known);
}

std::string FolderPartition::TakeRange() {
  if (pieces_.empty()) return "";
  Json files = Json::array();
  for (const Piece& piece : pieces_) files.push_back({piece.name, piece.first, piece.count});
  pieces_.clear();
  return Json{{"files", files}}.dump();
}

absl::Status FolderPartition::ReadRange(const std::string& range, SampleBlock* block) {
  const Json json = Json::parse(range, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("files", Json()).is_array()) return WrongPlace(range);
  for (const Json& piece : json["files"]) {
    if (!piece.is_array() || piece.size() != 3 || !piece[0].is_string() ||
        !piece[1].is_number_unsigned() || !piece[2].is_number_unsigned()) {
      return WrongPlace(range);
    }
    const std::string name = piece[0];
    uint64_t left = piece[2];
    if (name != name_) {
      CISTERN_RETURN_IF_ERROR(CloseFile());
      CISTERN_RETURN_IF_ERROR(OpenFile(name, std::nullopt));
      CISTERN_RETURN_IF_ERROR(SkipTo(piece[1].get<uint64_t>()));
    }
    while (left > 0) {
      const absl::StatusOr<size_t> rows =
          reader_ == nullptr ? 0 : ReadOpen(static_cast<size_t>(left), block);
      CISTERN_RETURN_IF_ERROR(rows.status());
      if (*rows == 0) {
        return absl::DataLossError(absl::StrCat(PathOf(name), ": lacks ", left,
                                                " rows that were read: files must not change once "
                                                "they are complete; restore it"));
      }
      left -= *rows;
    }
  }
  return absl::OkStatus();
}

std::string FolderPartition::place() const {
  Json json = {{"through", floor_}, {"read", recent_}};
  if (!name_.empty()) {
    json["file"] = name_;
    json["row"] = row_;
    json["bytes"] = bytes_;
  }
  return json.dump();
}

class FolderFeed : public FeedSource {
 public:
  explicit FolderFeed(const FolderFeedOptions& options) : options_(options) {
    for (uint32_t i = 0; i < options_.partitions; ++i) names_.push_back(absl::StrCat(i));
  }
  const std::vector<std::string>& partitions() const override { return names_; }
  std::string identity() const override { return "folder " + options_.folder; }
  absl::StatusOr<std::unique_ptr<FeedPartition>> Open(size_t i, const std::string& place) override {
    auto partition = std::make_unique<FolderPartition>(options_, static_cast<uint32_t>(i));
    CISTERN_RETURN_IF_ERROR(partition->MoveTo(place));
    return partition;
  }

 private:
  const FolderFeedOptions options_;
  std::vector<std::string> names_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FeedSource>> OpenFolderFeed(const FolderFeedOptions& options) {
  FolderFeedOptions mine = options;
  if (IsRemote(mine.folder)) {
    if (mine.completes == FileCompletes::kByAge) {
      return absl::InvalidArgumentError(
          absl::StrCat(mine.folder,
                       ": objects have no age, and are complete as soon as they exist: "
                       "set cistern.stream.complete to \"name\""));
    }
    mine.look_seconds = std::max(mine.look_seconds, kRemoteLookSeconds);
    const absl::StatusOr<std::vector<RemoteEntry>> found = ListRemote(mine.folder);
    CISTERN_RETURN_IF_ERROR(found.status());
    if (found->size() == 1 && (*found)[0].name.empty()) {
      return absl::InvalidArgumentError(mine.folder + ": is an object: name the prefix that grows");
    }
    return std::make_unique<FolderFeed>(mine);
  }
  while (mine.folder.size() > 1 && mine.folder.back() == '/') mine.folder.pop_back();
  std::error_code error;
  if (!fs::is_directory(mine.folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(mine.folder, ": is not a folder: create it, or name the folder that grows"));
  }
  return std::make_unique<FolderFeed>(mine);
}

}  // namespace cistern::data
