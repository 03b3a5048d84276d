// ModelFileWriter and ReadModelFile of model_folder.h: the files that hold rows.
#include <xxhash.h>

#include <algorithm>

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

// Only two plain names are taken, so that no file of a model can lie outside its folder.
absl::Status CheckFileName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() != 2 || !CheckName(parts[0]).ok() || !CheckName(parts[1]).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' cannot name a file of a model; it must be TABLE/FILE"));
  }
  return absl::OkStatus();
}

}  // namespace

ModelFileWriter::ModelFileWriter(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), hash_state_(XXH3_createState()) {
  CISTERN_CHECK(hash_state_ != nullptr);
  XXH3_64bits_reset(hash_state_);
}

absl::StatusOr<std::unique_ptr<ModelFileWriter>> ModelFileWriter::Create(FileSystem& files,
                                                                         const std::string& folder,
                                                                         const std::string& name) {
  CISTERN_RETURN_IF_ERROR(CheckFileName(name));
  const std::string path = PathBelow(folder, name), unfinished = path + kUnfinished;
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(ParentFolder(path)));
  std::unique_ptr<ModelFileWriter> writer(new ModelFileWriter(files, path));
  writer->file_.name = name;
  // What a save that was killed left under the temporary name is of no use to anyone.
  files.Remove(unfinished).IgnoreError();
  CISTERN_ASSIGN_OR_RETURN(writer->out_, files.Create(unfinished));
  return writer;
}

ModelFileWriter::~ModelFileWriter() {
  if (out_ != nullptr) {
    out_.reset();
    files_.Remove(path_ + kUnfinished).IgnoreError();
  }
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
  if (status_.ok()) status_ = out_->Append(lines);
  return status_;
}

absl::StatusOr<ModelFile> ModelFileWriter::Close() {
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = Finish();
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = absl::FailedPreconditionError(absl::StrCat(ShownPath(path_), " is closed"));
  file_.xxh3 = XXH3_64bits_digest(hash_state_);
  return file_;
}

absl::Status ModelFileWriter::Flush() {
  CISTERN_RETURN_IF_ERROR(out_->Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status ModelFileWriter::Finish() {
  CISTERN_RETURN_IF_ERROR(Flush());
  CISTERN_RETURN_IF_ERROR(out_->Sync());
  CISTERN_RETURN_IF_ERROR(out_->Close());
  CISTERN_RETURN_IF_ERROR(files_.Replace(path_ + kUnfinished, path_));
  out_.reset();
  return absl::OkStatus();
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

absl::Status ReadLines(const ReadableFile& opened, const ModelFile& file,
                       const std::function<absl::Status(absl::string_view)>& line) {
  if (opened.bytes() != file.bytes) {
    return Changed("size", absl::StrCat(opened.bytes()), absl::StrCat(file.bytes));
  }
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  CISTERN_CHECK(hash != nullptr);
  XXH3_64bits_reset(hash.get());
  LineCutter lines(line);
  std::vector<char> block(kBufferBytes);
  for (uint64_t offset = 0; offset < file.bytes; offset += block.size()) {
    const size_t size = std::min<uint64_t>(block.size(), file.bytes - offset);
    CISTERN_RETURN_IF_ERROR(opened.Read(offset, size, block.data()));
    XXH3_64bits_update(hash.get(), block.data(), size);
    CISTERN_RETURN_IF_ERROR(lines.Add(absl::string_view(block.data(), size)));
  }
  CISTERN_RETURN_IF_ERROR(lines.Finish());
  const uint64_t found = XXH3_64bits_digest(hash.get());
  if (found != file.xxh3) return Changed("hash", Hex(found), Hex(file.xxh3));
  if (lines.rows() != file.rows) {
    return Changed("number of rows", absl::StrCat(lines.rows()), absl::StrCat(file.rows));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadModelFile(FileSystem& files, const std::string& folder, const ModelFile& file,
                           const std::function<absl::Status(absl::string_view line)>& line) {
  CISTERN_RETURN_IF_ERROR(CheckFileName(file.name));
  const std::string path = PathBelow(folder, file.name);
  const absl::StatusOr<std::unique_ptr<ReadableFile>> opened = files.Open(path);
  if (absl::IsNotFound(opened.status()) || absl::IsInvalidArgument(opened.status())) {
    return absl::DataLossError(
        absl::StrCat(opened.status().message(), "; the model is not whole without this file"));
  }
  CISTERN_RETURN_IF_ERROR(opened.status());
  return AddContext(ReadLines(**opened, file, line), ShownPath(path));
}

}  // namespace cistern
