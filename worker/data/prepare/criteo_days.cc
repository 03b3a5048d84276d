#include "worker/data/prepare/criteo_days.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/checked.h"
#include "common/io/decompressor.h"
#include "common/io/new_file.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/output_folder.h"

namespace cistern::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMinBlockBytes = uint64_t{4} << 20, kMaxBlockBytes = uint64_t{64} << 20;
constexpr uint64_t kBlocksWanted = 1024;
constexpr uint32_t kMaxMultiHot = 1000;  // DLRM-v2 has 100
constexpr size_t kBytesAtOnce = size_t{4} << 20;
constexpr uint64_t kMinInflatedBytes = uint64_t{1} << 20;  // small files can be one character

// Bounds the decompressed size of a day: a compressed file can expand a thousandfold.
class Inflated {
 public:
  Inflated(const CriteoOptions& options, uint64_t packed_bytes, NewFile& text)
      : ratio_(options.gzip_max_ratio),
        mb_(options.gzip_max_mb),
        packed_bytes_(packed_bytes),
        ratio_bytes_(
            std::max(kMinInflatedBytes, CheckedMul(ratio_, packed_bytes).value_or(UINT64_MAX))),
        most_bytes_(CheckedMul(mb_, uint64_t{1} << 20).value_or(UINT64_MAX)),
        text_(text) {}

  absl::Status Append(absl::string_view block) {
    bytes_ += block.size();
    if (bytes_ > ratio_bytes_) {
      return WithOptions(Refuse(absl::StrCat("more than ", ratio_, " times its ", packed_bytes_,
                                             " bytes: if this is right, allow a higher ratio")),
                         {"gzip_max_ratio"});
    }
    if (bytes_ > most_bytes_) {
      return WithOptions(
          Refuse(absl::StrCat("more than ", mb_,
                              " MiB: if this is right and the disk has room, allow more")),
          {"gzip_max_mb"});
    }
    return text_.Append(block);
  }

 private:
  absl::Status Refuse(const std::string& why) const {
    return absl::DataLossError(absl::StrCat("it decompressed to ", bytes_, " bytes so far, ", why));
  }

  const uint64_t ratio_, mb_, packed_bytes_, ratio_bytes_, most_bytes_;
  NewFile& text_;
  uint64_t bytes_ = 0;
};

absl::Status Inflate(FileSystem& files, const CriteoOptions& options, const MappedFile& file,
                     const std::string& path, const std::function<absl::Status()>& step) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> text, NewFile::Create(files, path));
  text->WillBeRead();
  Inflated inflated(options, file.bytes().size(), *text);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> packed, OpenFileSource(file.path()));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                           Decompressed(std::move(packed)));
  std::string block(kBytesAtOnce, '\0');
  while (true) {
    CISTERN_RETURN_IF_ERROR(step());
    CISTERN_ASSIGN_OR_RETURN(const size_t got, source->Read(block.data(), block.size()));
    if (got == 0) return text->Close();
    CISTERN_RETURN_IF_ERROR(
        AddContext(inflated.Append(absl::string_view(block).substr(0, got)), file.path()));
  }
}

}  // namespace

absl::Status CheckCriteoOptions(const CriteoOptions& options) {
  if (options.days.size() < 2) {
    return absl::InvalidArgumentError(
        "name at least two files: one or more training days, then the test day");
  }
  if (options.multi_hot.has_value() && options.format != DataFormat::kNorm) {
    return absl::InvalidArgumentError(absl::StrCat("a slot of a ", FormatName(options.format),
                                                   " file holds one key; multi-hot needs Norm"));
  }
  if (options.multi_hot.has_value() && options.multi_hot->size > kMaxMultiHot) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           "the keys of a multi-hot sample must be at most ", kMaxMultiHot)),
                       {"multi_hot_size"});
  }
  if (options.memory_mb == 0 || options.samples_per_file == 0) {
    return WithOptions(
        absl::InvalidArgumentError("the memory and the samples per file must be at least 1"),
        {"memory_mb", "samples_per_file"});
  }
  constexpr uint64_t kMaxMemoryMb = uint64_t{1} << 30;
  if (options.memory_mb > kMaxMemoryMb) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat("the memory must be at most ", kMaxMemoryMb)),
        {"memory_mb"});
  }
  for (const auto& [a, b] : options.crosses) {
    if (a < kCriteoSparse && b < kCriteoSparse && a != b) continue;
    return absl::InvalidArgumentError(absl::StrCat("a cross of columns C", a + 1, " and C", b + 1,
                                                   ": name two different columns from C1 to C26"));
  }
  if (std::set(options.crosses.begin(), options.crosses.end()).size() != options.crosses.size()) {
    return absl::InvalidArgumentError("a cross is named twice");
  }
  for (const std::string& path : options.days) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": no such file"));
    }
  }
  return OutputFolder::CheckSpares(options.out, options.days);
}

std::string CriteoPlan(const CriteoOptions& options) {
  std::string plan = absl::StrCat("cistern criteo 2\nblocks ", options.block_bytes, "\n");
  for (const std::string& day : options.days) {
    std::error_code ignored;
    const auto changed = fs::last_write_time(day, ignored).time_since_epoch();
    absl::StrAppend(&plan, fs::absolute(day, ignored).string(), "\t", fs::file_size(day, ignored),
                    "\t", changed.count(), "\n");
  }
  absl::StrAppend(&plan, "dense ", static_cast<int>(options.dense), " min_count ",
                  options.min_count, " shuffle ", options.shuffle, " seed ", options.seed,
                  " memory ", options.memory_mb, "\n");
  for (const auto& [a, b] : options.crosses) absl::StrAppend(&plan, "cross ", a, " ", b, "\n");
  return plan;
}

absl::StatusOr<std::string> TextOfDay(FileSystem& files, const CriteoOptions& options, size_t day,
                                      const WorkFolder& work,
                                      const std::function<absl::Status()>& step) {
  const std::string& path = options.days[day];
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  if (file->bytes().empty()) return absl::DataLossError(absl::StrCat(path, " is empty: no row"));
  if (*CompressionOf(file->bytes()) == '\0') {
    const std::string kind = BinaryHint(file->bytes().substr(0, 64));
    if (kind.empty()) return path;
    return WithKind(absl::DataLossError(absl::StrCat(path, " is not a text file", kind)),
                    ErrorKind::kNotText);
  }
  const std::string text =
      work.Path(absl::StrCat("day-", day, "-", fs::path(path).stem().string()));
  std::error_code ignored;
  if (!fs::exists(text, ignored))
    CISTERN_RETURN_IF_ERROR(Inflate(files, options, *file, text, step));
  return text;
}

absl::StatusOr<CriteoDays> OpenCriteoDays(const CriteoOptions& options,
                                          const std::vector<std::string>& texts) {
  CriteoDays days;
  for (const std::string& path : texts) {
    CISTERN_ASSIGN_OR_RETURN(days.texts.emplace_back(), MappedFile::Open(path));
    days.bytes += days.texts.back()->bytes().size();
  }
  uint64_t block_bytes = options.block_bytes;
  if (block_bytes == 0) {
    block_bytes = std::clamp(days.bytes / kBlocksWanted, kMinBlockBytes, kMaxBlockBytes);
  }
  for (size_t day = 0; day < days.texts.size(); ++day) {
    const uint64_t size = days.texts[day]->bytes().size();
    for (uint64_t begin = 0; begin < size; begin += block_bytes) {
      days.blocks.push_back({day, begin, std::min(begin + block_bytes, size)});
    }
  }
  return days;
}

}  // namespace cistern::data
