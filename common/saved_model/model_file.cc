#include "common/saved_model/model_file.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/hash_text.h"
#include "common/base/names.h"
#include "common/io/gzip.h"
#include "common/io/piece_reader.h"
#include "common/saved_model/row_cutter.h"

namespace cistern {
namespace {

constexpr char kUnfinished[] = ".tmp";
constexpr char kBinarySuffix[] = ".bin";
constexpr char kGzipSuffix[] = ".gz";

// Accepts exactly two plain names, so that no file of a model can be outside its folder.
absl::Status CheckFileName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() != 2 || !CheckName(parts[0]).ok() || !CheckName(parts[1]).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not a valid model file name; it must be TABLE/FILE"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string SuffixOf(const v1::SaveFormat& format) {
  return absl::StrCat(format.kind() == v1::SaveFormat::BINARY ? kBinarySuffix : "",
                      format.gzip() ? kGzipSuffix : "");
}

v1::SaveFormat FormOfName(absl::string_view name) {
  v1::SaveFormat format;
  format.set_gzip(absl::ConsumeSuffix(&name, kGzipSuffix));
  if (absl::EndsWith(name, kBinarySuffix)) format.set_kind(v1::SaveFormat::BINARY);
  return format;
}

ModelFileWriter::ModelFileWriter(FileSystem& files, FilePath path)
    : files_(files), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<ModelFileWriter>> ModelFileWriter::Create(FileSystem& files,
                                                                         const std::string& folder,
                                                                         const std::string& name) {
  CISTERN_RETURN_IF_ERROR(CheckFileName(name));
  const FilePath path = PathBelow(folder, name), unfinished = path.With(kUnfinished);
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(ParentFolder(path.text())));
  std::unique_ptr<ModelFileWriter> writer(new ModelFileWriter(files, path));
  writer->file_.name = name;
  if (FormOfName(name).gzip()) writer->gzip_ = std::make_unique<GzipWriter>();
  // Removes a temporary file left by a save that was killed.
  files.Remove(unfinished).IgnoreError();
  CISTERN_ASSIGN_OR_RETURN(writer->out_, files.Create(unfinished));
  return writer;
}

ModelFileWriter::~ModelFileWriter() {
  if (out_ != nullptr) {
    out_.reset();
    files_.Remove(path_.With(kUnfinished)).IgnoreError();
  }
}

absl::Status ModelFileWriter::Append(absl::string_view bytes, uint64_t rows) {
  CISTERN_RETURN_IF_ERROR(status_);
  file_.rows += rows;
  if (gzip_ == nullptr) {
    status_ = Store(bytes);
    return status_;
  }
  std::string compressed;
  gzip_->Append(bytes, &compressed);
  status_ = Store(compressed);
  return status_;
}

absl::Status ModelFileWriter::Store(absl::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  file_.bytes += bytes.size();
  hash_.Add(bytes);
  return out_->Append(bytes);
}

absl::StatusOr<ModelFile> ModelFileWriter::Close() {
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = Finish();
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = absl::FailedPreconditionError(absl::StrCat(path_.text(), " is closed"));
  file_.xxh3 = hash_.value();
  return file_;
}

absl::Status ModelFileWriter::Finish() {
  if (gzip_ != nullptr) {
    std::string end;
    gzip_->Finish(&end);
    CISTERN_RETURN_IF_ERROR(Store(end));
  }
  CISTERN_RETURN_IF_ERROR(out_->Sync());
  CISTERN_RETURN_IF_ERROR(out_->Close());
  CISTERN_RETURN_IF_ERROR(files_.Replace(path_.With(kUnfinished), path_));
  out_.reset();
  return absl::OkStatus();
}

namespace {

absl::Status Changed(const char* what, const std::string& found, const std::string& recorded) {
  return absl::DataLossError(absl::StrCat("its ", what, " is ", found, ", not ", recorded,
                                          " as recorded; restore the file from a copy"));
}

// Feeds the bytes of a file to `cutter`, decompressed if `gzip`. hash: updated with the stored
// bytes; may be null.
absl::Status ReadRows(const ReadableFile& opened, bool gzip, RowCutter& cutter, StreamHash* hash) {
  std::unique_ptr<GzipReader> inflater;
  if (gzip) {
    inflater =
        std::make_unique<GzipReader>([&](absl::string_view block) { return cutter.Add(block); });
  }
  const uint64_t bytes = opened.bytes();
  PieceReader reader(&opened, bytes);
  for (uint64_t offset = 0; offset < bytes; offset += PieceReader::kPieceBytes) {
    const size_t size = std::min<uint64_t>(PieceReader::kPieceBytes, bytes - offset);
    CISTERN_ASSIGN_OR_RETURN(const absl::string_view block, reader.Get(offset, size));
    if (hash != nullptr) hash->Add(block);
    CISTERN_RETURN_IF_ERROR(gzip ? inflater->Append(block) : cutter.Add(block));
  }
  if (gzip) CISTERN_RETURN_IF_ERROR(inflater->Finish());
  return cutter.Finish();
}

absl::Status ReadChecked(const ReadableFile& opened, const ModelFile& file,
                         const RowCutter::Row& row) {
  if (opened.bytes() != file.bytes) {
    return Changed("size", absl::StrCat(opened.bytes()), absl::StrCat(file.bytes));
  }
  StreamHash hash;
  const v1::SaveFormat form = FormOfName(file.name);
  const std::unique_ptr<RowCutter> cutter = RowCutter::Create(form.kind(), row, file.rows);
  CISTERN_RETURN_IF_ERROR(ReadRows(opened, form.gzip(), *cutter, &hash));
  const uint64_t found = hash.value();
  if (found != file.xxh3) return Changed("hash", HashText(found), HashText(file.xxh3));
  if (cutter->rows() != file.rows) {
    return Changed("number of rows", absl::StrCat(cutter->rows()), absl::StrCat(file.rows));
  }
  return absl::OkStatus();
}

// Opens file `name` of a model. kDataLoss if it is missing or not a regular file.
absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFileOf(FileSystem& files,
                                                         const std::string& folder,
                                                         const std::string& name) {
  CISTERN_RETURN_IF_ERROR(CheckFileName(name));
  absl::StatusOr<std::unique_ptr<ReadableFile>> opened = files.Open(PathBelow(folder, name));
  if (absl::IsNotFound(opened.status()) || absl::IsInvalidArgument(opened.status())) {
    return absl::DataLossError(
        absl::StrCat(opened.status().message(), "; the model is incomplete without this file"));
  }
  return opened;
}

}  // namespace

absl::Status ReadModelFile(FileSystem& files, const std::string& folder, const ModelFile& file,
                           const std::function<absl::Status(absl::string_view row)>& row) {
  CISTERN_ASSIGN_OR_RETURN(const auto opened, OpenFileOf(files, folder, file.name));
  return AddContext(ReadChecked(*opened, file, row), PathBelow(folder, file.name).text());
}

absl::Status ReadForeignFile(FileSystem& files, const std::string& folder, const std::string& name,
                             const std::function<absl::Status(absl::string_view row)>& row) {
  CISTERN_ASSIGN_OR_RETURN(const auto opened, OpenFileOf(files, folder, name));
  const v1::SaveFormat form = FormOfName(name);
  const bool is_text = form.kind() != v1::SaveFormat::BINARY;
  const RowCutter::Row without_return = [&](absl::string_view line) {
    if (is_text) absl::ConsumeSuffix(&line, "\r");
    return row(line);
  };
  const std::unique_ptr<RowCutter> cutter =
      RowCutter::Create(form.kind(), without_return, UINT64_MAX);
  return AddContext(ReadRows(*opened, form.gzip(), *cutter, /*hash=*/nullptr),
                    PathBelow(folder, name).text());
}

}  // namespace cistern
