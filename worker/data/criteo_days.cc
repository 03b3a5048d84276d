#include "worker/data/criteo_days.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace cistern {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBlockBytesLeast = uint64_t{4} << 20, kBlockBytesMost = uint64_t{64} << 20;
constexpr uint64_t kBlocksWanted = 1024;

absl::Status CheckOptions(const CriteoOptions& options) {
  if (options.days.size() < 2) {
    return absl::InvalidArgumentError(
        "name at least two files: days to train with, and one more, the last, to test with");
  }
  if (options.multi_hot.has_value() && options.format != DataFormat::kNorm) {
    return absl::InvalidArgumentError(absl::StrCat("a slot of a ", FormatName(options.format),
                                                   " file holds one key; multi-hot needs Norm"));
  }
  if (options.memory_mb == 0 || options.samples_per_file == 0) {
    return absl::InvalidArgumentError("memory and samples of a file are at least 1");
  }
  for (const auto& [a, b] : options.crosses) {
    if (a < kCriteoSparse && b < kCriteoSparse && a != b) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a cross of columns C", a + 1, " and C", b + 1, ": name two of C1 to C26"));
  }
  if (std::set(options.crosses.begin(), options.crosses.end()).size() != options.crosses.size()) {
    return absl::InvalidArgumentError("a cross is named twice");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CriteoDays> OpenCriteoDays(const CriteoOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckOptions(options));
  CriteoDays days;
  for (const std::string& path : options.days) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": no such file"));
    }
    CISTERN_ASSIGN_OR_RETURN(days.texts.emplace_back(), MappedFile::Open(path));
    days.bytes += days.texts.back()->bytes().size();
  }
  uint64_t block_bytes = options.block_bytes;
  if (block_bytes == 0) {
    block_bytes = std::clamp(days.bytes / kBlocksWanted, kBlockBytesLeast, kBlockBytesMost);
  }
  for (size_t day = 0; day < days.texts.size(); ++day) {
    const uint64_t size = days.texts[day]->bytes().size();
    for (uint64_t begin = 0; begin < size; begin += block_bytes) {
      days.blocks.push_back({day, begin, std::min(begin + block_bytes, size)});
    }
  }
  return days;
}

std::string CriteoPlan(const CriteoOptions& options, const CriteoDays& days) {
  std::string plan = absl::StrCat("cistern criteo 1\n", days.blocks.size(), " ",
                                  days.blocks.empty() ? 0 : days.blocks[0].end, "\n");
  for (size_t day = 0; day < days.texts.size(); ++day) {
    std::error_code ignored;
    const auto changed = fs::last_write_time(options.days[day], ignored).time_since_epoch();
    absl::StrAppend(&plan, fs::absolute(options.days[day], ignored).string(), "\t",
                    days.texts[day]->bytes().size(), "\t", changed.count(), "\n");
  }
  absl::StrAppend(&plan, "dense ", static_cast<int>(options.dense), " min_count ",
                  options.min_count, " shuffle ", options.shuffle, " seed ", options.seed,
                  " memory ", options.memory_mb, "\n");
  for (const auto& [a, b] : options.crosses) absl::StrAppend(&plan, "cross ", a, " ", b, "\n");
  return plan;
}

}  // namespace cistern
