#include "worker/export/xbox/donefile_set.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

constexpr char kSet[] = ".donefiles";

std::string FileName(DonefileSet::Kind kind) {
  return kind == DonefileSet::Kind::kBase ? "base.txt" : "patch.txt";
}

// A file system may have no links.
absl::Status MakeLink(FileSystem& files, const std::string& target, const std::string& path) {
  return AddContext(files.MakeLink(target, path),
                    "several tables are announced through symbolic links (without these, export "
                    "each table to a folder of its own)");
}

}  // namespace

DonefileSet::DonefileSet(FileSystem& files, std::string root, std::vector<std::string> tables)
    : files_(files),
      root_(std::move(root)),
      tables_(tables.empty() ? std::vector<std::string>{""} : std::move(tables)) {}

std::string DonefileSet::PathOf(const std::string& table, Kind kind) const {
  return absl::StrCat(root_, table.empty() ? "" : "/", table, "/donefile/", FileName(kind));
}

absl::Status DonefileSet::Open() {
  if (!is_single()) return OpenSeveral();
  for (const Kind kind : {Kind::kBase, Kind::kPatch}) {
    CISTERN_ASSIGN_OR_RETURN(texts_[Name("", kind)], ReadDonefile(files_, PathOf("", kind)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DoneLine>> DonefileSet::Last(const std::string& table,
                                                          Kind kind) const {
  const auto text = texts_.find({table, kind});
  if (text == texts_.end()) return std::nullopt;
  return LastLine(text->second, PathOf(table, kind));
}

absl::Status DonefileSet::OpenSeveral() {
  absl::StatusOr<std::string> set = files_.ReadLink(absl::StrCat(root_, "/", kSet));
  if (absl::IsInvalidArgument(set.status())) set = LinkCopiedSet();
  if (!absl::IsNotFound(set.status())) {
    CISTERN_ASSIGN_OR_RETURN(current_, set);
    CISTERN_RETURN_IF_ERROR(ReadSet());
  }
  for (const std::string& table : tables_) {
    for (const Kind kind : {Kind::kBase, Kind::kPatch}) {
      CISTERN_RETURN_IF_ERROR(ReadFile({table, kind}));
    }
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(root_));
  for (const std::string& name : names) {
    const bool is_left = absl::StartsWith(name, absl::StrCat(kSet, "-")) && name != current_;
    if (!is_left) continue;
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, absl::StrCat(root_, "/", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DonefileSet::LinkCopiedSet() {
  const std::string name = absl::StrCat(kSet, "-copied");
  const std::string link = absl::StrCat(root_, "/", kSet), folder = absl::StrCat(root_, "/", name);
  CISTERN_RETURN_IF_ERROR(RemoveTree(files_, folder));
  CISTERN_RETURN_IF_ERROR(files_.Replace(link, folder));
  CISTERN_RETURN_IF_ERROR(MakeLink(files_, name, link));
  return name;
}

absl::Status DonefileSet::ReadSet() {
  const std::string folder = absl::StrCat(root_, "/", current_);
  const absl::StatusOr<std::vector<std::string>> tables = files_.List(folder);
  if (absl::IsNotFound(tables.status())) {
    return absl::DataLossError(
        absl::StrCat(folder, ", to which ", root_, "/", kSet,
                     " links, is missing, and with it the donefiles: export to another folder"));
  }
  CISTERN_RETURN_IF_ERROR(tables.status());
  for (const std::string& table : *tables) {
    for (const Kind kind : {Kind::kBase, Kind::kPatch}) {
      CISTERN_ASSIGN_OR_RETURN(
          std::string text,
          ReadDonefile(files_, absl::StrCat(folder, "/", table, "/", FileName(kind))));
      if (!text.empty()) texts_[{table, kind}] = std::move(text);
    }
  }
  return absl::OkStatus();
}

absl::Status DonefileSet::ReadFile(const Name& name) {
  const std::string path = PathOf(name.first, name.second);
  const absl::Status link = files_.ReadLink(path).status();
  if (link.ok()) {
    linked_.insert(name);
  } else if (absl::IsNotFound(link)) {
    texts_.erase(name);  // somebody has removed the dictionary
  } else if (absl::IsInvalidArgument(link)) {
    CISTERN_ASSIGN_OR_RETURN(texts_[name], ReadDonefile(files_, path));
  } else {
    return link;
  }
  return absl::OkStatus();
}

absl::Status DonefileSet::Announce(uint64_t id, Kind kind,
                                   const std::map<std::string, DoneLine>& lines) {
  std::map<Name, std::string> texts = texts_;
  for (const std::string& table : tables_) {
    CISTERN_RETURN_IF_ERROR(AppendLine(lines.at(table), &texts[{table, kind}]));
  }
  if (is_single()) {
    texts_ = std::move(texts);
    return WriteWhole(files_, PathOf("", kind), texts_[{"", kind}]);
  }
  CISTERN_RETURN_IF_ERROR(Link(id, kind));
  texts_ = std::move(texts);
  return WriteSet(absl::StrCat(kSet, "-", id));
}

absl::Status DonefileSet::Link(uint64_t id, Kind kind) {
  std::vector<Name> unlinked;
  for (const std::string& table : tables_) {
    for (const Kind one : {Kind::kBase, Kind::kPatch}) {
      const Name name = {table, one};
      const bool is_needed = one == kind || texts_.count(name) != 0;
      if (is_needed && linked_.count(name) == 0) unlinked.push_back(name);
    }
  }
  if (unlinked.empty()) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(WriteSet(absl::StrCat(kSet, "-", id, "-before")));
  for (const Name& name : unlinked) {
    const std::string path = PathOf(name.first, name.second), fresh = path + ".tmp";
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(ParentFolder(path)));
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, fresh));
    CISTERN_RETURN_IF_ERROR(MakeLink(
        files_, absl::StrCat("../../", kSet, "/", name.first, "/", FileName(name.second)), fresh));
    CISTERN_RETURN_IF_ERROR(files_.Replace(fresh, path));
    CISTERN_RETURN_IF_ERROR(files_.SyncFolder(ParentFolder(path)));
    linked_.insert(name);
  }
  return absl::OkStatus();
}

absl::Status DonefileSet::WriteSet(const std::string& folder) {
  const std::string path = absl::StrCat(root_, "/", folder);
  CISTERN_RETURN_IF_ERROR(RemoveTree(files_, path));
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(path));
  for (const auto& [name, text] : texts_) {
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(absl::StrCat(path, "/", name.first)));
    CISTERN_RETURN_IF_ERROR(
        WriteWhole(files_, absl::StrCat(path, "/", name.first, "/", FileName(name.second)), text));
  }
  const std::string link = absl::StrCat(root_, "/", kSet), fresh = link + ".new";
  CISTERN_RETURN_IF_ERROR(RemoveTree(files_, fresh));
  CISTERN_RETURN_IF_ERROR(MakeLink(files_, folder, fresh));
  CISTERN_RETURN_IF_ERROR(files_.Replace(fresh, link));
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(root_));
  current_ = folder;
  return absl::OkStatus();
}

}  // namespace cistern
