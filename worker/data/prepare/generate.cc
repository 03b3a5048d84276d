#include "worker/data/prepare/generate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/base/philox.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/format/sample_set_writer.h"
#include "worker/data/format/slot_sizes.h"
#include "worker/data/prepare/uniform_double.h"

namespace cistern::data {
namespace {

constexpr uint64_t kSamplesPerBlock = 1024;

// Streams of the random generator, one per purpose.
enum Stream : uint64_t {
  kLabel = uint64_t{1} << 40,      // + label
  kDense = uint64_t{2} << 40,      // + feature
  kNnz = uint64_t{3} << 40,        // + slot
  kKey = uint64_t{4} << 40,        // + place among the keys of a sample
  kKeyWeight = uint64_t{5} << 40,  // + label and slot
};

// Draws samples. Keys are numbered from 0 in each slot.
class Generator {
 public:
  explicit Generator(const GenerateOptions& options)
      : options_(options),
        shape_(options.data.shape),
        sizes_(SlotSizes::Create(shape_, options.data.slot_sizes).value_or(SlotSizes())),
        whole_(options.data.format == DataFormat::kRaw && !options.data.float_label_dense),
        bias_(std::log(options.click_rate / (1 - options.click_rate))) {}

  // Appends sample `number` to `block`.
  void Append(uint64_t number, SampleBlock* block) const {
    for (uint32_t i = 0; i < shape_.dense_dim; ++i) {
      const PhiloxBlock bits = Draw(number, kDense + i);
      block->dense.push_back(whole_ ? static_cast<float>(bits.word[0] % 100)
                                    : UniformFromBits(bits.word[0]));
    }
    std::vector<double> logits(shape_.label_dim, 0);
    uint64_t slot = 0, place = 0;
    for (size_t input = 0; input < shape_.slot_nums.size(); ++input) {
      SparseColumn& column = block->sparse[input];
      for (uint32_t i = 0; i < shape_.slot_nums[input]; ++i, ++slot) {
        const uint32_t nnz = 1 + Draw(number, kNnz + slot).word[0] % options_.max_nnz;
        for (uint32_t k = 0; k < nnz; ++k, ++place) {
          column.keys.push_back(DrawKey(number, place, sizes_.size(slot)));
          AddWeights(column.keys.back(), slot, 1 / std::sqrt(nnz), &logits);
        }
        column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
      }
    }
    const double scale = slot == 0 ? 0 : options_.signal / std::sqrt(slot);
    for (uint32_t i = 0; i < shape_.label_dim; ++i) {
      const double probability = 1 / (1 + std::exp(-(bias_ + scale * logits[i])));
      block->label.push_back(UniformDouble(Draw(number, kLabel + i)) < probability ? 1 : 0);
    }
    ++block->size;
  }

 private:
  PhiloxBlock Draw(uint64_t counter, uint64_t stream) const {
    return Philox(options_.seed, counter, stream);
  }

  Key DrawKey(uint64_t number, uint64_t place, uint64_t size) const {
    const double u = UniformDouble(Draw(number, kKey + place)), keys = static_cast<double>(size);
    if (options_.keys == KeyDistribution::kUniform) {
      return std::min(static_cast<Key>(u * keys), size - 1);
    }
    const double power = 1 - options_.alpha;
    const double y = std::abs(power) < 1e-9
                         ? std::pow(keys, u)
                         : std::pow((std::pow(keys, power) - 1) * u + 1, 1 / power);
    return std::clamp<uint64_t>(static_cast<uint64_t>(std::llround(y)), 1, size) - 1;
  }

  void AddWeights(Key key, uint64_t slot, double scale, std::vector<double>* logits) const {
    if (options_.signal == 0) return;
    for (size_t i = 0; i < logits->size(); ++i) {
      const PhiloxBlock bits = Draw(key, kKeyWeight + (uint64_t{i} << 24) + slot);
      (*logits)[i] += scale * NormalFromBits(bits.word[0], bits.word[1]);
    }
  }

  const GenerateOptions& options_;
  const SampleShape& shape_;
  const SlotSizes sizes_;
  const bool whole_;
  const double bias_;
};

// Checks that the largest key fits the format. Keys of Norm files are numbered over all slots.
absl::Status CheckWidth(const DataSetOptions& data) {
  const bool is_norm = data.format == DataFormat::kNorm;
  if (data.format == DataFormat::kParquet || (is_norm && data.wide_keys)) return absl::OkStatus();
  uint64_t keys = 0;
  for (const uint64_t size : data.slot_sizes) keys = is_norm ? keys + size : std::max(keys, size);
  for (const std::vector<Key>& starts : data.slot_starts) {
    if (is_norm && !starts.empty()) keys = std::max(keys, starts.back());
  }
  if (keys <= kReservedKey32) return absl::OkStatus();
  return WithOptions(absl::InvalidArgumentError(
                         is_norm ? absl::StrCat("the slots have ", keys,
                                                " keys in all, more than 32 bits hold: use 64-bit "
                                                "keys, or the model's \"input_key_type\": \"I64\"")
                                 : absl::StrCat("a slot has ", keys,
                                                " keys, more than the 32 bits of a Raw file hold: "
                                                "use smaller slots, or another format")),
                     {"key_bits", "slot_sizes"});
}

absl::Status Check(const GenerateOptions& options) {
  const auto invalid = [](const std::string& why) { return absl::InvalidArgumentError(why); };
  const SampleShape& shape = options.data.shape;
  if (options.train_samples == 0 || options.test_samples == 0) {
    return invalid("generated data needs at least one sample for training and one for the test");
  }
  if (shape.label_dim == 0 || SlotNum(shape) == 0) {
    return invalid("generated data needs at least one label and one slot");
  }
  if (options.data.slot_sizes.empty())
    return WithOptions(invalid("the keys of each slot are not named"), {"slot_sizes"});
  CISTERN_RETURN_IF_ERROR(SlotSizes::Create(shape, options.data.slot_sizes).status());
  CISTERN_RETURN_IF_ERROR(CheckWidth(options.data));
  if (!(options.alpha > 0)) return invalid("alpha must be above 0");
  if (!(options.click_rate > 0 && options.click_rate < 1)) {
    return invalid("the click rate must be between 0 and 1");
  }
  if (!(options.signal >= 0)) return invalid("signal must be 0 or more");
  if (options.samples_per_file == 0) return invalid("a file must hold at least one sample");
  if (options.max_nnz == 0) return invalid("a slot must hold at least one key");
  if (options.max_nnz > 1 && options.data.format != DataFormat::kNorm) {
    return invalid(absl::StrCat("a slot of a ", FormatName(options.data.format),
                                " file holds one key; only Norm files hold more"));
  }
  return absl::OkStatus();
}

// Norm files store keys as the model sees them: offset by the sizes of all slots before, over all
// inputs, or by slot_starts if the input has them.
void AddOffsets(const SlotSizes& sizes, const DataSetOptions& data, SampleBlock* block) {
  const SampleShape& shape = data.shape;
  size_t first_slot = 0;
  for (size_t input = 0; input < block->sparse.size(); ++input) {
    const size_t slots = shape.slot_nums[input];
    SparseColumn& column = block->sparse[input];
    const bool own = input < data.slot_starts.size() && !data.slot_starts[input].empty();
    for (size_t place = 0; place + 1 < column.offsets.size(); ++place) {
      for (uint32_t k = column.offsets[place]; k < column.offsets[place + 1]; ++k) {
        column.keys[k] +=
            own ? data.slot_starts[input][place % slots] : sizes.offset(first_slot + place % slots);
      }
    }
    first_slot += slots;
  }
}

// Writes samples [first, first + count). Returns the source relative to `folder`.
absl::StatusOr<std::string> WriteSamples(FileSystem& files, const GenerateOptions& options,
                                         const std::function<bool(uint64_t)>& progress,
                                         const std::string& folder, uint64_t first, uint64_t count,
                                         uint64_t* positives) {
  CISTERN_ASSIGN_OR_RETURN(
      const std::unique_ptr<SampleSetWriter> writer,
      CreateSampleSetWriter(files, folder, options.data, options.samples_per_file));
  CISTERN_ASSIGN_OR_RETURN(const SlotSizes sizes,
                           SlotSizes::Create(options.data.shape, options.data.slot_sizes));
  const Generator generator(options);
  SampleBlock block;
  for (uint64_t done = 0; done < count;) {
    if (progress && !progress(first + done)) {
      return absl::CancelledError("interrupted: nothing was written");
    }
    block.Reset(options.data.shape.slot_nums.size());
    for (; done < count && block.size < kSamplesPerBlock; ++done) {
      generator.Append(first + done, &block);
      *positives += block.label[block.label.size() - options.data.shape.label_dim] > 0;
    }
    if (options.data.format == DataFormat::kNorm) AddOffsets(sizes, options.data, &block);
    CISTERN_RETURN_IF_ERROR(writer->Append(block));
  }
  CISTERN_RETURN_IF_ERROR(writer->Close());
  return writer->source();
}

}  // namespace

absl::StatusOr<GenerateSummary> Generate(const GenerateOptions& options,
                                         const std::function<bool(uint64_t)>& progress) {
  CISTERN_RETURN_IF_ERROR(Check(options));
  LocalFileSystem own;
  FileSystem& files = options.files == nullptr ? own : *options.files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFolder> out,
                           OutputFolder::Create(files, options.out, options.overwrite));
  CISTERN_ASSIGN_OR_RETURN(const std::string train, out->Subfolder("train"));
  CISTERN_ASSIGN_OR_RETURN(const std::string test, out->Subfolder("test"));
  GenerateSummary summary;
  CISTERN_ASSIGN_OR_RETURN(const std::string train_source,
                           WriteSamples(files, options, progress, train, 0, options.train_samples,
                                        &summary.train_positives));
  CISTERN_ASSIGN_OR_RETURN(const std::string test_source,
                           WriteSamples(files, options, progress, test, options.train_samples,
                                        options.test_samples, &summary.test_positives));
  CISTERN_RETURN_IF_ERROR(out->Publish());
  summary.train_source = options.out + "/train/" + train_source;
  summary.test_source = options.out + "/test/" + test_source;
  return summary;
}

}  // namespace cistern::data
