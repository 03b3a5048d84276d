// ModelFileWriter and ReadModelFile of model_folder.h: the files that hold rows.
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>

#include "absl/strings/str_split.h"
#include "common/check.h"
#include "common/model_folder.h"
#include "common/names.h"

namespace cistern {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
// The longest line of any table is below 300 KB (4096 weights with Adam's m and v).
constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr char kUnfinished[] = ".tmp";

struct FolderAndLeaf {
  std::string folder, leaf;
};

// Only two plain names are taken, so that no file of a model can lie outside its folder.
absl::StatusOr<FolderAndLeaf> SplitName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() != 2 || !CheckName(parts[0]).ok() || !CheckName(parts[1]).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' cannot name a file of a model; it must be TABLE/FILE"));
  }
  return FolderAndLeaf{parts[0], parts[1]};
}

}  // namespace

ModelFileWriter::ModelFileWriter() : hash_state_(XXH3_createState()) {
  CISTERN_CHECK(hash_state_ != nullptr);
  XXH3_64bits_reset(hash_state_);
}

absl::StatusOr<std::unique_ptr<ModelFileWriter>> ModelFileWriter::Create(const std::string& folder,
                                                                         const std::string& name) {
  CISTERN_ASSIGN_OR_RETURN(const FolderAndLeaf split, SplitName(name));
  const std::string table_folder = absl::StrCat(folder, "/", split.folder);
  CISTERN_RETURN_IF_ERROR(MakeFolders(table_folder));
  CISTERN_ASSIGN_OR_RETURN(const FileDescriptor parent, OpenFolder(folder));

  std::unique_ptr<ModelFileWriter> writer(new ModelFileWriter);
  writer->path_ = absl::StrCat(folder, "/", name);
  writer->leaf_ = split.leaf;
  writer->file_.name = name;
  CISTERN_ASSIGN_OR_RETURN(writer->folder_, OpenFolderAt(parent.get(), split.folder, table_folder));
  // What a save that was killed left under the temporary name is of no use to anyone.
  const std::string unfinished = split.leaf + kUnfinished;
  unlinkat(writer->folder_.get(), unfinished.c_str(), 0);
  CISTERN_ASSIGN_OR_RETURN(
      writer->fd_, CreateFileAt(writer->folder_.get(), unfinished, writer->path_ + kUnfinished));
  return writer;
}

ModelFileWriter::~ModelFileWriter() {
  if (fd_.is_open()) unlinkat(folder_.get(), (leaf_ + kUnfinished).c_str(), 0);
  XXH3_freeState(hash_state_);
}

absl::Status ModelFileWriter::Append(absl::string_view lines, uint64_t rows) {
  CISTERN_RETURN_IF_ERROR(status_);
  file_.rows += rows;
  file_.bytes += lines.size();
  XXH3_64bits_update(hash_state_, lines.data(), lines.size());
  if (buffer_.size() + lines.size() <= kBufferBytes) {
    buffer_.append(lines.data(), lines.size());
    return absl::OkStatus();
  }
  status_ = Flush();
  if (status_.ok()) status_ = WriteFully(fd_.get(), lines, path_);
  return status_;
}

absl::StatusOr<ModelFile> ModelFileWriter::Close() {
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = Finish();
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  file_.xxh3 = XXH3_64bits_digest(hash_state_);
  return file_;
}

absl::Status ModelFileWriter::Flush() {
  CISTERN_RETURN_IF_ERROR(WriteFully(fd_.get(), buffer_, path_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status ModelFileWriter::Finish() {
  CISTERN_RETURN_IF_ERROR(Flush());
  CISTERN_RETURN_IF_ERROR(SyncToDisk(fd_.get(), path_));
  const std::string unfinished = leaf_ + kUnfinished;
  if (renameat(folder_.get(), unfinished.c_str(), folder_.get(), leaf_.c_str()) != 0) {
    return ErrnoStatus(errno, "rename the finished file to", path_);
  }
  return fd_.Close(path_);
}

namespace {

// Cuts a stream of blocks into lines.
class LineCutter {
 public:
  explicit LineCutter(const std::function<absl::Status(absl::string_view)>& line) : line_(line) {}

  uint64_t rows() const { return rows_; }

  absl::Status Add(absl::string_view block) {
    while (true) {
      const size_t end = block.find('\n');
      const absl::string_view head = block.substr(0, end);
      if (rest_.size() + head.size() > kMaxLineBytes) {
        return absl::DataLossError(
            absl::StrCat("line ", rows_ + 1, " is longer than ", kMaxLineBytes, " bytes"));
      }
      if (end == absl::string_view::npos) {
        rest_.append(head.data(), head.size());
        return absl::OkStatus();
      }
      CISTERN_RETURN_IF_ERROR(Deliver(head));
      block.remove_prefix(end + 1);
    }
  }

  absl::Status Finish() const {
    if (rest_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("line ", rows_ + 1, " has no line end"));
  }

 private:
  absl::Status Deliver(absl::string_view head) {
    ++rows_;
    absl::string_view whole = head;
    if (!rest_.empty()) {
      rest_.append(head.data(), head.size());
      whole = rest_;
    }
    const absl::Status status = line_(whole);
    rest_.clear();
    return status.ok() ? status : AddContext(status, absl::StrCat("line ", rows_));
  }

  const std::function<absl::Status(absl::string_view)>& line_;
  std::string rest_;  // of a line that began in an earlier block
  uint64_t rows_ = 0;
};

std::string Hex(uint64_t x) {
  return absl::StrCat(absl::Hex(x, absl::kZeroPad16));
}

absl::Status Changed(const char* what, const std::string& found, const std::string& recorded) {
  return absl::DataLossError(absl::StrCat("its ", what, " is ", found, " and not ", recorded,
                                          " as when it was saved; restore the file from a copy"));
}

absl::Status ReadLines(const OpenedFile& opened, const std::string& path, const ModelFile& file,
                       const std::function<absl::Status(absl::string_view)>& line) {
  if (opened.bytes != file.bytes) {
    return Changed("size", absl::StrCat(opened.bytes), absl::StrCat(file.bytes));
  }
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  CISTERN_CHECK(hash != nullptr);
  XXH3_64bits_reset(hash.get());
  LineCutter lines(line);
  std::vector<char> block(kBufferBytes);
  uint64_t total = 0;
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got,
                             ReadFully(opened.fd.get(), block.data(), block.size(), path));
    total += got;
    XXH3_64bits_update(hash.get(), block.data(), got);
    CISTERN_RETURN_IF_ERROR(lines.Add(absl::string_view(block.data(), got)));
    if (got < block.size()) break;
  }
  CISTERN_RETURN_IF_ERROR(lines.Finish());
  if (total != file.bytes) return Changed("size", absl::StrCat(total), absl::StrCat(file.bytes));
  const uint64_t found = XXH3_64bits_digest(hash.get());
  if (found != file.xxh3) return Changed("hash", Hex(found), Hex(file.xxh3));
  if (lines.rows() != file.rows) {
    return Changed("number of rows", absl::StrCat(lines.rows()), absl::StrCat(file.rows));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadModelFile(const std::string& folder, const ModelFile& file,
                           const std::function<absl::Status(absl::string_view line)>& line) {
  CISTERN_ASSIGN_OR_RETURN(const FolderAndLeaf split, SplitName(file.name));
  const std::string path = absl::StrCat(folder, "/", file.name);
  const absl::StatusOr<OpenedFile> opened = [&]() -> absl::StatusOr<OpenedFile> {
    CISTERN_ASSIGN_OR_RETURN(const FileDescriptor model, OpenFolder(folder));
    CISTERN_ASSIGN_OR_RETURN(
        const FileDescriptor table,
        OpenFolderAt(model.get(), split.folder, absl::StrCat(folder, "/", split.folder)));
    return OpenFileAt(table.get(), split.leaf, path);
  }();
  if (absl::IsNotFound(opened.status()) || absl::IsInvalidArgument(opened.status())) {
    return absl::DataLossError(
        absl::StrCat(opened.status().message(), "; the model is not whole without this file"));
  }
  CISTERN_RETURN_IF_ERROR(opened.status());
  return AddContext(ReadLines(*opened, path, file, line), path);
}

}  // namespace cistern
