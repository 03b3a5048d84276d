#include "worker/data/prepare/inspect.h"

#include <algorithm>
#include <memory>

#include "worker/data/format/file_list.h"
#include "worker/data/format/norm_file.h"
#include "worker/data/prepare/key_counter.h"

namespace cistern::data {
namespace {

constexpr size_t kSamplesPerRead = 1024;

// Reads the first records of `path` with keys of the given width.
absl::Status TryWidth(const std::string& path, NormOptions options, bool wide) {
  options.wide_keys = wide;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NormFile> file, NormFile::Open(path, options));
  SampleBlock block;
  block.Reset(1);
  return file->Read(kSamplesPerRead, &block).status();
}

absl::StatusOr<bool> GuessWide(const std::string& path, const NormOptions& options) {
  const absl::Status wide = TryWidth(path, options, true);
  if (wide.ok()) return true;
  const absl::Status narrow = TryWidth(path, options, false);
  if (narrow.ok()) return false;
  return absl::DataLossError(absl::StrCat("is valid neither with 8-byte keys (", wide.message(),
                                          ") nor with 4-byte keys (", narrow.message(), ")"));
}

void AddNumber(float x, uint64_t samples_before, NormSummary::Number* number) {
  number->mean += x;  // the sum, until Finish divides it
  number->min = samples_before == 0 ? x : std::min<double>(number->min, x);
  number->max = samples_before == 0 ? x : std::max<double>(number->max, x);
  number->zeros += x == 0;
}

std::string SampleText(const SampleBlock& block, size_t sample, const SampleShape& shape) {
  std::string text = "label";
  for (uint32_t i = 0; i < shape.label_dim; ++i) {
    absl::StrAppend(&text, " ", block.label[sample * shape.label_dim + i]);
  }
  if (shape.dense_dim > 0) text += " | dense";
  for (uint32_t i = 0; i < shape.dense_dim; ++i) {
    absl::StrAppend(&text, " ", block.dense[sample * shape.dense_dim + i]);
  }
  const SparseColumn& column = block.sparse[0];
  const uint32_t* offsets = column.offsets.data() + sample * shape.slot_nums[0];
  for (uint32_t slot = 0; slot < shape.slot_nums[0]; ++slot) {
    absl::StrAppend(&text, " | ", slot, ":");
    for (uint32_t k = offsets[slot]; k < offsets[slot + 1]; ++k) {
      absl::StrAppend(&text, " ", column.keys[k]);
    }
  }
  return text;
}

// Accumulates samples into a summary.
class Inspection {
 public:
  explicit Inspection(NormSummary* summary)
      : summary_(*summary), counters_(summary->shape.slot_nums[0]) {
    summary_.label.resize(summary_.shape.label_dim);
    summary_.dense.resize(summary_.shape.dense_dim);
    summary_.slots.resize(summary_.shape.slot_nums[0]);
  }

  void Add(const SampleBlock& block, uint64_t print) {
    const size_t labels = summary_.label.size(), dense = summary_.dense.size();
    for (size_t sample = 0; sample < block.size; ++sample, ++summary_.samples) {
      for (size_t i = 0; i < labels; ++i) {
        AddNumber(block.label[sample * labels + i], summary_.samples, &summary_.label[i]);
      }
      for (size_t i = 0; i < dense; ++i) {
        AddNumber(block.dense[sample * dense + i], summary_.samples, &summary_.dense[i]);
      }
      AddKeys(block.sparse[0], sample);
      if (summary_.first.size() < print) {
        summary_.first.push_back(SampleText(block, sample, summary_.shape));
      }
    }
  }

  void Finish(size_t top) {
    const double samples = static_cast<double>(std::max<uint64_t>(1, summary_.samples));
    for (NormSummary::Number& number : summary_.label) number.mean /= samples;
    for (NormSummary::Number& number : summary_.dense) number.mean /= samples;
    for (size_t i = 0; i < counters_.size(); ++i) {
      summary_.slots[i].distinct = counters_[i].Distinct();
      summary_.slots[i].distinct_exact = counters_[i].exact();
      summary_.slots[i].top = counters_[i].Top(top);
    }
  }

 private:
  void AddKeys(const SparseColumn& column, size_t sample) {
    const size_t slots = counters_.size();
    const uint32_t* offsets = column.offsets.data() + sample * slots;
    for (size_t i = 0; i < slots; ++i) {
      const uint32_t count = offsets[i + 1] - offsets[i];
      NormSummary::Slot& slot = summary_.slots[i];
      slot.keys += count;
      slot.empty += count == 0;
      slot.max_keys = std::max(slot.max_keys, count);
      for (uint32_t k = offsets[i]; k < offsets[i + 1]; ++k) counters_[i].Add(column.keys[k]);
    }
    summary_.max_keys = std::max(summary_.max_keys, offsets[slots] - offsets[0]);
  }

  NormSummary& summary_;
  std::vector<KeyCounter> counters_;
};

// The options to read a file with this header.
NormOptions OptionsFor(const NormBegin& begin) {
  NormOptions options;
  options.check = begin.check;
  options.shape.label_dim = static_cast<uint32_t>(begin.header.label_dim);
  options.shape.dense_dim = static_cast<uint32_t>(begin.header.dense_dim);
  options.shape.slot_nums = {static_cast<uint32_t>(begin.header.slot_num)};
  return options;
}

}  // namespace

absl::StatusOr<NormSummary> InspectNorm(const InspectOptions& options) {
  if (options.key_bits != 0 && options.key_bits != 32 && options.key_bits != 64) {
    return WithOptions(absl::InvalidArgumentError("a key has 32 or 64 bits"), {"key_bits"});
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadFileList(options.source));
  if (paths.empty()) return absl::DataLossError(absl::StrCat(options.source, " lists no files"));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, ByteStream::Open(paths[0]));
  CISTERN_ASSIGN_OR_RETURN(const NormBegin begin, ReadNormBegin(*stream));
  NormOptions norm = OptionsFor(begin);
  norm.wide_keys = options.key_bits == 64;
  if (options.key_bits == 0) {
    const absl::StatusOr<bool> wide = GuessWide(paths[0], norm);
    if (!wide.ok()) return AddContext(wide.status(), paths[0]);
    norm.wide_keys = *wide;
  }
  NormSummary summary;
  summary.check = norm.check;
  summary.key_bits = norm.wide_keys ? 64 : 32;
  summary.key_bits_guessed = options.key_bits == 0;
  summary.shape = norm.shape;
  summary.files = paths.size();
  Inspection inspection(&summary);
  const uint64_t limit = options.max_samples == 0 ? ~uint64_t{0} : options.max_samples;
  SampleBlock block;
  for (const std::string& path : paths) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NormFile> file, NormFile::Open(path, norm));
    summary.records += static_cast<uint64_t>(file->header().number_of_records);
    while (summary.samples < limit) {
      block.Reset(1);
      CISTERN_ASSIGN_OR_RETURN(
          const size_t got,
          file->Read(std::min<uint64_t>(kSamplesPerRead, limit - summary.samples), &block));
      if (got == 0) break;
      inspection.Add(block, options.print);
    }
  }
  inspection.Finish(options.top);
  return summary;
}

absl::StatusOr<NormSummary> InspectDataSet(const InspectOptions& options, DataSetOptions data) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadFileList(options.source));
  data.source = options.source;
  data.shape.slot_nums = {static_cast<uint32_t>(SlotNum(data.shape))};
  data.shape.max_keys = {0};
  data.slot_starts.clear();
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, OpenDataSet(data));
  NormSummary summary;
  summary.format = data.format;
  summary.shape = data.shape;
  summary.files = paths.size();
  Inspection inspection(&summary);
  const uint64_t limit = options.max_samples == 0 ? ~uint64_t{0} : options.max_samples;
  SampleBlock block;
  while (summary.samples < limit) {
    block.Reset(1);
    CISTERN_ASSIGN_OR_RETURN(
        const size_t got,
        reader->Read(std::min<uint64_t>(kSamplesPerRead, limit - summary.samples), &block));
    if (got == 0) break;
    inspection.Add(block, options.print);
  }
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rest, reader->Skip(~uint64_t{0}, &block));
  summary.records = summary.samples + rest;
  inspection.Finish(options.top);
  return summary;
}

}  // namespace cistern::data
