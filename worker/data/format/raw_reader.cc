#include "worker/data/format/raw_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "common/base/check.h"
#include "common/base/machine_limits.h"
#include "common/io/mapped_file.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/slot_sizes.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

class RawReader : public SampleReader {
 public:
  struct File {
    std::string path;
    uint64_t samples = 0;
  };
  // Reads the first `samples` samples, counted over all files.
  RawReader(const RawOptions& options, SlotSizes sizes, std::vector<File> files, uint64_t samples)
      : options_(options),
        sizes_(std::move(sizes)),
        sample_bytes_(RawSampleBytes(options.shape)),
        key_slots_(KeySlots(options.shape)),
        files_(std::move(files)),
        samples_(samples),
        left_(samples),
        // Training needs the other cores.
        threads_(options.threads > 0 ? options.threads : std::clamp(CoreCount() / 4, 1, 4)) {
    Advance(0);  // past empty files
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_CHECK(block->sparse.size() == options_.shape.slot_nums.size());
    size_t done = 0;
    while (done < max_samples && left_ > 0) {
      if (file_ == nullptr) {
        CISTERN_ASSIGN_OR_RETURN(file_, MappedFile::Open(files_[at_].path));
      }
      const uint64_t count =
          std::min({uint64_t{max_samples - done}, left_, files_[at_].samples - record_});
      CISTERN_RETURN_IF_ERROR(CheckSize());
      CISTERN_RETURN_IF_ERROR(AppendSamples(count, block));
      if (options_.counts != nullptr) options_.counts->decoded_bytes += count * sample_bytes_;
      done += count;
      left_ -= count;
      Advance(count);
    }
    return done;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    const uint64_t count = std::min(max_samples, left_);
    left_ -= count;
    Advance(count);
    return count;
  }

  std::optional<uint64_t> Samples() const override { return samples_; }
  std::string PlaceOf(uint64_t sample) const override { return PlaceAmong(files_, sample); }

 private:
  // Moves forward by `count` samples, across files.
  void Advance(uint64_t count) {
    record_ += count;
    while (at_ < files_.size() && record_ >= files_[at_].samples) {
      record_ -= files_[at_++].samples;
      file_.reset();
    }
  }

  // kDataLoss if the current file has shrunk since the data set was opened.
  absl::Status CheckSize() const {
    CISTERN_RETURN_IF_ERROR(file_->StillWhole());
    if (file_->bytes().size() / sample_bytes_ >= files_[at_].samples) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(file_->path(), " has become shorter while it was being read"));
  }

  // Appends `count` samples, starting at record_; on error, the samples before the bad one.
  absl::Status AppendSamples(uint64_t count, SampleBlock* block) {
    const SampleShape& shape = options_.shape;
    const size_t before = block->size, after = before + count;
    block->label.resize(after * shape.label_dim);
    block->dense.resize(after * shape.dense_dim);
    Columns columns;
    columns.label = block->label.data() + before * shape.label_dim;
    columns.dense = block->dense.data() + before * shape.dense_dim;
    for (size_t input = 0; input < shape.slot_nums.size(); ++input) {
      SparseColumn& column = block->sparse[input];
      // Every slot of a Raw sample holds one key.
      const size_t at = column.keys.size(), slots = shape.slot_nums[input];
      column.keys.resize(at + count * slots);
      column.offsets.resize(at + count * slots + 1);
      for (size_t k = at; k < column.keys.size(); ++k) {
        column.offsets[k + 1] = static_cast<uint32_t>(k + 1);
      }
      columns.keys.push_back(column.keys.data() + at);
    }
    constexpr uint64_t kPiece = 4096;  // samples that a thread decodes at once
    [[maybe_unused]] constexpr uint64_t kWorthThreads = 4 * kPiece;  // without OpenMP
    const uint64_t pieces = (count + kPiece - 1) / kPiece;
    std::vector<BadSample> bad(pieces);
#pragma omp parallel for num_threads(threads_) if (count > kWorthThreads)
    for (uint64_t p = 0; p < pieces; ++p) {
      bad[p] = Decode(p * kPiece, std::min(count, (p + 1) * kPiece), columns);
    }
    for (const BadSample& first : bad) {
      if (first.status.ok()) continue;
      block->size = before + first.sample;
      CutBack(block);
      return AddContext(first.status,
                        absl::StrCat(file_->path(), ": record ", record_ + first.sample));
    }
    block->size = after;
    return absl::OkStatus();
  }

  struct BadSample {
    uint64_t sample = 0;  // after record_
    absl::Status status;
  };

  // Where the values of the next sample go.
  struct Columns {
    float *label, *dense;
    std::vector<Key*> keys;  // by input
  };

  // Decodes samples [begin, end) after record_ up to the first bad one. columns: of sample 0.
  BadSample Decode(uint64_t begin, uint64_t end, Columns columns) const {
    columns.label += begin * options_.shape.label_dim;
    columns.dense += begin * options_.shape.dense_dim;
    for (size_t i = 0; i < columns.keys.size(); ++i) {
      columns.keys[i] += begin * options_.shape.slot_nums[i];
    }
    const char* sample = file_->bytes().data() + (record_ + begin) * sample_bytes_;
    for (uint64_t i = begin; i < end; ++i, sample += sample_bytes_) {
      absl::Status status = DecodeSample(sample, &columns);
      if (!status.ok()) return {i, std::move(status)};
    }
    return {};
  }

  // Decodes a sample and moves `columns` on.
  absl::Status DecodeSample(const char* place, Columns* columns) const {
    const SampleShape& shape = options_.shape;
    for (uint32_t i = 0; i < shape.label_dim; ++i, place += 4) {
      const float x =
          options_.float_label_dense ? Load<float>(place) : static_cast<float>(Load<int>(place));
      if (!std::isfinite(x)) return BadNumber("label", i, place);
      *columns->label++ = x;
    }
    for (uint32_t i = 0; i < shape.dense_dim; ++i, place += 4) {
      const float x = options_.float_label_dense ? Load<float>(place) : LogOf(Load<int>(place));
      if (!std::isfinite(x)) return BadNumber("dense feature", i, place);
      *columns->dense++ = x;
    }
    size_t slot_of_all = 0;
    for (size_t input = 0; input < shape.slot_nums.size(); ++input) {
      Key*& keys = columns->keys[input];
      for (uint32_t slot = 0; slot < shape.slot_nums[input]; ++slot, ++slot_of_all, place += 4) {
        const uint32_t key = Load<uint32_t>(place);
        const bool is_reserved = key == kReservedKey32 && slot_of_all < key_slots_;
        if (is_reserved || key >= sizes_.size(slot_of_all)) {
          return BadKey(input, slot, slot_of_all, key);
        }
        *keys++ = key + sizes_.offset(slot_of_all);
      }
    }
    return absl::OkStatus();
  }

  // log(x + 1). Counts are small most of the time, so theirs are computed once.
  static float LogOf(int x) {
    constexpr int kSmall = 4096;
    static const std::array<float, kSmall> kLogs = [] {
      std::array<float, kSmall> logs;
      for (int i = 0; i < kSmall; ++i) {
        logs[static_cast<size_t>(i)] = std::log(static_cast<float>(i) + 1.0f);
      }
      return logs;
    }();
    if (0 <= x && x < kSmall) return kLogs[static_cast<size_t>(x)];
    return std::log(static_cast<float>(x) + 1.0f);
  }

  // Removes what was appended behind the block's samples.
  void CutBack(SampleBlock* block) const {
    const SampleShape& shape = options_.shape;
    block->label.resize(block->size * shape.label_dim);
    block->dense.resize(block->size * shape.dense_dim);
    for (size_t input = 0; input < shape.slot_nums.size(); ++input) {
      SparseColumn& column = block->sparse[input];
      column.offsets.resize(block->size * shape.slot_nums[input] + 1);
      column.keys.resize(column.offsets.back());
    }
  }

  absl::Status BadNumber(const char* what, uint32_t place, const char* bytes) const {
    if (options_.float_label_dense) {
      return absl::DataLossError(absl::StrCat(what, " ", place, " is not a finite number",
                                              " (if the file holds integers, set float_label_dense "
                                              "to false)"));
    }
    return absl::DataLossError(
        absl::StrCat(what, " ", place, " is ", Load<int>(bytes),
                     ", but log(x + 1) needs an integer of 0 or more: shift the column, or write "
                     "floats and set float_label_dense"));
  }

  absl::Status BadKey(size_t input, uint32_t slot, size_t slot_of_all, uint32_t key) const {
    const std::string at = absl::StrCat("slot ", slot, " of input ", input, ": ");
    if (key == kReservedKey32 && sizes_.size(slot_of_all) > key) {
      return absl::OutOfRangeError(absl::StrCat(at, "key ", key, " is the reserved key"));
    }
    // Shows the key as a signed number: many programs write int32.
    return absl::OutOfRangeError(
        absl::StrCat(at, sizes_.Refusal(slot_of_all, static_cast<int32_t>(key))));
  }

  const RawOptions options_;
  const SlotSizes sizes_;
  const size_t sample_bytes_;
  const uint64_t key_slots_;  // the slots after these hold weights of keys
  const std::vector<File> files_;
  size_t at_ = 0;           // index of the current file
  uint64_t record_ = 0;     // next record in it, from 0
  const uint64_t samples_;  // to read, counted over all files
  uint64_t left_;           // samples to read
  const int threads_;
  std::unique_ptr<MappedFile> file_;
};

absl::StatusOr<RawReader::File> LookAt(const std::string& path, const SampleShape& shape) {
  if (IsRemote(path)) {
    return absl::UnimplementedError(absl::StrCat(
        path,
        ": Raw files are mapped into memory, so they must be on this machine: copy the file, "
        "or use Norm, Tar or Parquet"));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const size_t size = file->bytes().size(), sample = RawSampleBytes(shape);
  if (size == 0) {
    return WithKind(
        absl::DataLossError(absl::StrCat(path, " has 0 bytes: it is cut short; copy it again")),
        ErrorKind::kCutShort);
  }
  if (size % sample == 0) return RawReader::File{path, size / sample};
  const std::string hint = BinaryHint(file->bytes().substr(0, 8));
  if (!hint.empty()) return absl::DataLossError(absl::StrCat(path, " is not a Raw file", hint));
  return WithKind(
      absl::DataLossError(absl::StrCat(
          path, ": its ", size, " bytes are not a whole number of samples: label_dim ",
          shape.label_dim, ", dense_dim ", shape.dense_dim, " and ", KeySlots(shape), " slots ",
          HasKeyWeights(shape) ? "with weights of keys (cistern.key_weights) " : "",
          "make samples of ", sample, " bytes, and ", size % sample,
          " are left over: the file is cut short, or the model's shape does not match it")),
      ErrorKind::kCutShort);
}

}  // namespace

size_t RawSampleBytes(const SampleShape& shape) {
  return 4 * (size_t{shape.label_dim} + shape.dense_dim + SlotNum(shape));
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenRaw(const RawOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadFileList(options.source));
  return OpenRaw(options, paths);
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenRaw(const RawOptions& options,
                                                      const std::vector<std::string>& paths) {
  CISTERN_CHECK(RawSampleBytes(options.shape) > 0);
  CISTERN_ASSIGN_OR_RETURN(SlotSizes sizes, SlotSizes::Create(options.shape, options.slot_sizes));
  std::vector<RawReader::File> files;
  uint64_t samples = 0;
  for (const std::string& path : paths) {
    CISTERN_ASSIGN_OR_RETURN(RawReader::File file, LookAt(path, options.shape));
    samples += file.samples;
    files.push_back(std::move(file));
  }
  if (options.num_samples > samples) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_samples is ", options.num_samples, ", but ", options.source, " holds ",
                     samples, " samples of ", RawSampleBytes(options.shape),
                     " bytes: set it to that number, or omit it to read all samples"));
  }
  if (options.num_samples > 0) samples = options.num_samples;
  return std::make_unique<RawReader>(options, std::move(sizes), std::move(files), samples);
}

}  // namespace cistern::data
