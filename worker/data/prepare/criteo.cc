#include "worker/data/prepare/criteo.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/machine_limits.h"
#include "common/base/philox.h"
#include "common/base/thread_limit.h"
#include "common/base/thread_pool.h"
#include "common/io/new_file.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/format/sample_set_writer.h"
#include "worker/data/prepare/criteo_days.h"
#include "worker/data/prepare/criteo_ids.h"
#include "worker/data/prepare/criteo_rows.h"
#include "worker/data/prepare/criteo_samples.h"
#include "worker/data/prepare/parallel_steps.h"
#include "worker/data/prepare/work_folder.h"

namespace cistern::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxParts = 512;

// Streams of the random generator.
enum PartStream : uint64_t { kPart, kOrder };

// Threads: one at a time; uses its own thread pool.
class Preparation {
 public:
  Preparation(FileSystem& files, const CriteoOptions& options,
              const std::function<bool(uint64_t)>& progress, std::unique_ptr<WorkFolder> work)
      : files_(files),
        options_(options),
        progress_(progress),
        work_(std::move(work)),
        pool_(options.threads > 0
                  ? static_cast<int>(std::min<uint64_t>(options.threads, kMaxThreads))
                  : CoreCount()) {
    data_.format = options.format;
    data_.check = options.check;
    data_.wide_keys = options.wide_keys;
    data_.float_label_dense = true;
    const size_t crosses = options.crosses.size();
    wide_slot_ = crosses > 0 && options.format == DataFormat::kNorm;
    const size_t slots = kCriteoSparse + (wide_slot_ ? 1 : crosses);
    data_.shape = {1, kCriteoDense, {static_cast<uint32_t>(slots)}, {0}};
    summary_.resumed = work_->goes_on();
  }

  absl::StatusOr<CriteoSummary> Run() {
    CISTERN_RETURN_IF_ERROR(OpenDays());
    // A row of text is not much smaller than an encoded row.
    if (options_.shuffle) {
      parts_ = std::min<uint64_t>(kMaxParts, 1 + 2 * days_.bytes / (options_.memory_mb << 20));
    }
    CISTERN_RETURN_IF_ERROR(ReadBlocks());
    CISTERN_RETURN_IF_ERROR(CountBlocks());
    CISTERN_RETURN_IF_ERROR(MakeIds());
    CISTERN_RETURN_IF_ERROR(DealBlocks());
    CISTERN_RETURN_IF_ERROR(Write());
    work_->Remove();
    return summary_;
  }

 private:
  size_t columns() const { return kCriteoSparse + options_.crosses.size(); }
  std::string PathOf(const char* kind, size_t i) const {
    return work_->Path(absl::StrCat(kind, "-", i));
  }
  static bool IsThere(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
  }

  absl::Status OpenDays() {
    std::vector<std::string> texts(options_.days.size());
    CISTERN_RETURN_IF_ERROR(OnThreads(pool_, texts.size(), [&](size_t day) -> absl::Status {
      CISTERN_ASSIGN_OR_RETURN(
          texts[day], TextOfDay(files_, options_, day, *work_, [this] { return Tick(0); }));
      return absl::OkStatus();
    }));
    CISTERN_ASSIGN_OR_RETURN(days_, OpenCriteoDays(options_, texts));
    return absl::OkStatus();
  }

  absl::Status ReadBlocks() {
    return OnThreads(pool_, days_.blocks.size(), [&](size_t i) -> absl::Status {
      CISTERN_RETURN_IF_ERROR(Tick(0));
      const std::string values = PathOf("values", i);
      if (IsThere(values)) return absl::OkStatus();
      const CriteoBlock& block = days_.blocks[i];
      CISTERN_RETURN_IF_ERROR(ReadCriteoBlock(files_, *days_.texts[block.day], block,
                                              options_.dense, options_.crosses, PathOf("rows", i),
                                              values));
      CISTERN_ASSIGN_OR_RETURN(const auto read, BlockValuesFile::Open(values));
      return Tick(read->counts().rows);
    });
  }

  // Sums the counts of the blocks, and numbers their rows and values over all blocks.
  absl::Status CountBlocks() {
    std::vector<uint64_t> next_id(columns(), 0);
    std::vector<std::pair<float, float>> ranges(kCriteoDense, {HUGE_VALF, -HUGE_VALF});
    for (size_t i = 0; i < days_.blocks.size(); ++i) {
      CISTERN_ASSIGN_OR_RETURN(const auto file, BlockValuesFile::Open(PathOf("values", i)));
      if (file->column_num() != columns()) {
        return absl::DataLossError(absl::StrCat(PathOf("values", i), " holds ", file->column_num(),
                                                " columns instead of ", columns(),
                                                ": remove its folder and start again"));
      }
      const BlockValues::Counts& counts = file->counts();
      const bool is_test = days_.is_test(days_.blocks[i]);
      uint64_t& samples = is_test ? summary_.test_samples : summary_.train_samples;
      blocks_.push_back({next_id, samples, is_test ? 1 : parts_});
      samples += counts.rows;
      (is_test ? summary_.test_positives : summary_.train_positives) += counts.positives;
      summary_.clipped += counts.clipped;
      for (size_t c = 0; c < columns(); ++c) next_id[c] += file->distinct(c);
      for (size_t k = 0; !is_test && k < kCriteoDense; ++k) {
        ranges[k].first = std::min(ranges[k].first, counts.min[k]);
        ranges[k].second = std::max(ranges[k].second, counts.max[k]);
      }
    }
    if (options_.dense == CriteoDense::kMinMax && summary_.train_samples > 0) {
      dealing_.ranges = ranges;
    }
    return absl::OkStatus();
  }

  absl::Status MakeIds() {
    std::vector<std::string> values;
    for (size_t i = 0; i < days_.blocks.size(); ++i) values.push_back(PathOf("values", i));
    sizes_.resize(columns());
    // Splits the memory among the columns that are processed at the same time.
    const auto at_once = std::min<uint64_t>(static_cast<uint64_t>(pool_.thread_num()), columns());
    CISTERN_RETURN_IF_ERROR(OnThreads(pool_, columns(), [&](size_t c) -> absl::Status {
      CISTERN_RETURN_IF_ERROR(Tick(0));
      if (ReadSize(c)) return absl::OkStatus();
      CriteoIdOptions ids;
      ids.min_count = options_.min_count;
      ids.memory_bytes = (options_.memory_mb << 20) / at_once;
      ids.is_cross = c >= kCriteoSparse;
      CISTERN_ASSIGN_OR_RETURN(
          sizes_[c], MakeCriteoIds(files_, c, values, ids, PathOf("map", c), PathOf("ids", c)));
      return WriteWhole(files_, PathOf("size", c), absl::StrCat(sizes_[c], "\n"));
    }));
    for (size_t c = 0; c < columns(); ++c) {
      CISTERN_ASSIGN_OR_RETURN(dealing_.maps.emplace_back(), MappedFile::Open(PathOf("map", c)));
    }
    // The wide part comes first.
    summary_.slot_sizes.assign(sizes_.begin() + kCriteoSparse, sizes_.end());
    summary_.slot_sizes.insert(summary_.slot_sizes.end(), sizes_.begin(),
                               sizes_.begin() + kCriteoSparse);
    return absl::OkStatus();
  }

  // Whether an earlier run made the ids of column c.
  bool ReadSize(size_t c) {
    if (!IsThere(PathOf("size", c))) return false;
    const absl::StatusOr<std::unique_ptr<MappedFile>> file = MappedFile::Open(PathOf("size", c));
    return file.ok() && absl::SimpleAtoi((*file)->bytes(), &sizes_[c]);
  }

  absl::Status DealBlocks() {
    dealing_.part_of = [this](uint64_t row) {
      return Philox(options_.seed, row, kPart).word[0] % parts_;
    };
    CISTERN_RETURN_IF_ERROR(OnThreads(pool_, blocks_.size(), [&](size_t i) -> absl::Status {
      CISTERN_RETURN_IF_ERROR(Tick(0));
      const std::string rows = PathOf("rows", i), dealt = PathOf("dealt", i);
      if (!IsThere(dealt))
        CISTERN_RETURN_IF_ERROR(DealBlock(files_, dealing_, blocks_[i], rows, dealt));
      std::error_code ignored;
      fs::remove(rows, ignored);
      return absl::OkStatus();
    }));
    dealing_.maps.clear();
    for (size_t i = 0; i < blocks_.size(); ++i) {
      CISTERN_ASSIGN_OR_RETURN(const auto file, OpenDealt(i));
      summary_.clipped += file->clipped();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DealtFile>> OpenDealt(size_t i) const {
    return DealtFile::Open(PathOf("dealt", i), blocks_[i].parts, CriteoRowWords(columns()));
  }

  absl::Status Tick(uint64_t rows) {
    absl::MutexLock lock(&progress_mutex_);
    ticks_ += rows;
    if (progress_ == nullptr || progress_(ticks_)) return absl::OkStatus();
    return absl::CancelledError(absl::StrCat(
        "interrupted: nothing was written; run the same command again to continue from ",
        work_->path()));
  }

  absl::Status Write() {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFolder> out,
                             OutputFolder::Create(files_, options_.out, options_.overwrite));
    if (options_.multi_hot.has_value()) {
      CISTERN_ASSIGN_OR_RETURN(
          MultiHot made,
          MultiHot::Create(*options_.multi_hot, {sizes_.begin(), sizes_.begin() + kCriteoSparse}));
      multi_hot_ = std::make_unique<MultiHot>(std::move(made));
    }
    CISTERN_RETURN_IF_ERROR(WriteSet(*out, "train", false, &summary_.train_source));
    CISTERN_RETURN_IF_ERROR(WriteSet(*out, "test", true, &summary_.test_source));
    CISTERN_RETURN_IF_ERROR(SaveIds(*out));
    CISTERN_RETURN_IF_ERROR(SaveRanges(*out));
    return out->Publish();
  }

  absl::Status WriteSet(OutputFolder& out, const std::string& name, bool is_test,
                        std::string* source) {
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, out.Subfolder(name));
    CISTERN_ASSIGN_OR_RETURN(
        const std::unique_ptr<SampleSetWriter> writer,
        CreateSampleSetWriter(files_, folder, data_, options_.samples_per_file));
    std::vector<size_t> blocks;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (days_.is_test(days_.blocks[i]) == is_test) blocks.push_back(i);
    }
    if (options_.shuffle && !is_test) {
      for (uint64_t part = 0; part < parts_; ++part) {
        CISTERN_RETURN_IF_ERROR(WriteShuffled(blocks, part, writer.get()));
      }
    } else {
      for (const size_t i : blocks) {
        CISTERN_ASSIGN_OR_RETURN(const auto file, OpenDealt(i));
        CISTERN_RETURN_IF_ERROR(WriteRows(file->bytes(0), {}, writer.get()));
      }
    }
    CISTERN_RETURN_IF_ERROR(writer->Close());
    *source = absl::StrCat(options_.out, "/", name, "/", writer->source());
    return absl::OkStatus();
  }

  // Writes one part of the training data: its rows from all blocks, shuffled.
  absl::Status WriteShuffled(const std::vector<size_t>& blocks, uint64_t part,
                             SampleSetWriter* writer) {
    std::string rows;
    for (const size_t i : blocks) {
      CISTERN_ASSIGN_OR_RETURN(const auto file, OpenDealt(i));
      const absl::string_view bytes = file->bytes(part);
      rows.append(bytes.data(), bytes.size());
    }
    std::vector<uint32_t> order(rows.size() / RowBytes()), other(order.size());
    std::iota(order.begin(), order.end(), 0);
    pool_.ParallelFor(CriteoSamples::Blocks(order.size()), [&](size_t block) {
      const uint64_t end =
          std::min<uint64_t>((block + 1) * CriteoSamples::kRowsPerBlock, order.size());
      for (uint64_t i = block * CriteoSamples::kRowsPerBlock; i < end; ++i) {
        const PhiloxBlock bits = Philox(options_.seed, i + 1, kOrder + (part << 8));
        other[i] = static_cast<uint32_t>((uint64_t{bits.word[0]} << 32 | bits.word[1]) % (i + 1));
      }
    });
    for (uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[other[i - 1]]);
    return WriteRows(rows, order, writer);
  }

  // order: row order[i] is written as row i; empty: no change.
  absl::Status WriteRows(absl::string_view rows, const std::vector<uint32_t>& order,
                         SampleSetWriter* writer) {
    CISTERN_RETURN_IF_ERROR(Tick(0));
    const CriteoSamples samples(options_.format, sizes_, wide_slot_, multi_hot_.get());
    const size_t at_once = 4 * static_cast<size_t>(pool_.thread_num());
    std::vector<SampleBlock> blocks(at_once);
    const size_t count = CriteoSamples::Blocks(rows.size() / RowBytes());
    for (size_t done = 0; done < count; done += at_once) {
      blocks.resize(std::min(at_once, count - done));
      const auto take = [&](size_t i) { samples.Take(rows, order, done + i, &blocks[i]); };
      if (counts_frequencies()) {  // MultiHot is then not thread-safe
        for (size_t i = 0; i < blocks.size(); ++i) take(i);
      } else {
        pool_.ParallelFor(blocks.size(), take);
      }
      CISTERN_RETURN_IF_ERROR(writer->AppendAll(blocks, pool_));
    }
    return absl::OkStatus();
  }

  bool counts_frequencies() const {
    return multi_hot_ != nullptr && options_.multi_hot->count_frequencies;
  }

  size_t RowBytes() const { return CriteoRowWords(columns()) * sizeof(uint32_t); }

  absl::Status SaveIds(OutputFolder& out) const {
    CISTERN_ASSIGN_OR_RETURN(const std::string ids, out.Subfolder("ids"));
    for (size_t c = 0; c < columns(); ++c) {
      const bool is_cross = c >= kCriteoSparse;
      const std::string name =
          absl::StrCat(is_cross ? "cross_" : "cat_", is_cross ? c - kCriteoSparse : c, ".txt");
      CISTERN_ASSIGN_OR_RETURN(const auto values, MappedFile::Open(PathOf("ids", c)));
      CISTERN_ASSIGN_OR_RETURN(const auto copy,
                               NewFile::Create(files_, absl::StrCat(ids, "/", name)));
      copy->WillBeRead();
      CISTERN_RETURN_IF_ERROR(copy->Append(values->bytes()));
      CISTERN_RETURN_IF_ERROR(copy->Close());
    }
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, out.Subfolder(""));
    if (counts_frequencies()) {
      CISTERN_RETURN_IF_ERROR(multi_hot_->SaveFrequencies(files_, folder + "/frequencies.tsv"));
    }
    return WriteWhole(files_, folder + "/slot_sizes.json",
                      absl::StrCat("[", absl::StrJoin(summary_.slot_sizes, ", "), "]\n"));
  }

  // Saves the ranges, which are needed to scale further data.
  absl::Status SaveRanges(OutputFolder& out) const {
    if (dealing_.ranges.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, out.Subfolder(""));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file,
                             NewFile::Create(files_, folder + "/dense_ranges.tsv"));
    for (size_t i = 0; i < dealing_.ranges.size(); ++i) {
      // As text of floats: 2^63 - 1 rounds to 2^63, which no int64_t holds.
      const auto [min, max] = dealing_.ranges[i];
      CISTERN_RETURN_IF_ERROR(file->Append(absl::StrFormat("I%d\t%.0f\t%.0f\n", i + 1, min, max)));
    }
    return file->Close();
  }

  FileSystem& files_;
  const CriteoOptions& options_;
  const std::function<bool(uint64_t)>& progress_;
  CriteoDays days_;
  const std::unique_ptr<WorkFolder> work_;
  ThreadPool pool_;
  DataSetOptions data_;
  bool wide_slot_ = false;  // the crosses are the keys of one slot
  uint64_t parts_ = 1;
  std::vector<DealtBlock> blocks_;
  std::vector<uint64_t> sizes_;  // by column
  CriteoDealing dealing_;
  std::unique_ptr<MultiHot> multi_hot_;
  CriteoSummary summary_;
  absl::Mutex progress_mutex_;
  uint64_t ticks_ ABSL_GUARDED_BY(progress_mutex_) = 0;
};

}  // namespace

absl::StatusOr<CriteoSummary> PrepareCriteo(const CriteoOptions& options,
                                            const std::function<bool(uint64_t rows)>& progress) {
  CISTERN_RETURN_IF_ERROR(CheckCriteoOptions(options));
  LocalFileSystem own;
  FileSystem& files = options.files == nullptr ? own : *options.files;
  CISTERN_RETURN_IF_ERROR(OutputFolder::Check(options.out, options.overwrite));
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<WorkFolder> work,
                           WorkFolder::Open(files, options.out, CriteoPlan(options)));
  WorkFolder* const folder = work.get();
  Preparation preparation(files, options, progress, std::move(work));
  absl::StatusOr<CriteoSummary> summary = preparation.Run();
  if (!summary.ok() && !absl::IsCancelled(summary.status())) folder->Remove();
  return summary;
}

}  // namespace cistern::data
