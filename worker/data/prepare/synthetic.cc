#include "worker/data/prepare/synthetic.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "common/base/philox.h"
#include "worker/data/format/norm_set_writer.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/prepare/uniform_double.h"

namespace cistern::data {
namespace {

constexpr size_t kSamplesPerWrite = 1024;

// Streams of the random generator, one per purpose. Test samples are numbered after training ones.
enum Stream : uint64_t {
  kLabel,
  kDenseWeight,
  kKeyWeight,
  kFactor = uint64_t{1} << 32,  // + position in v
  kDense = uint64_t{2} << 32,   // + place
  kKey = uint64_t{3} << 32,     // + slot
};

class SyntheticModel {
 public:
  explicit SyntheticModel(const SyntheticOptions& options) : options_(options) {
    for (uint32_t i = 0; i < options.dense; ++i) {
      dense_weights_.push_back(options.dense_scale * Normal(i, kDenseWeight));
    }
  }

  // Appends sample `number` to `block`. Returns the probability of label 1.
  double Append(uint64_t number, SampleBlock* block) const;

 private:
  double Normal(uint64_t counter, uint64_t stream) const {
    const PhiloxBlock bits = Philox(options_.seed, counter, stream);
    return NormalFromBits(bits.word[0], bits.word[1]);
  }
  Key DrawKey(uint64_t number, uint32_t slot) const;
  double Logit(const float* dense, const Key* keys) const;

  const SyntheticOptions options_;
  std::vector<double> dense_weights_;
};

double SyntheticModel::Append(uint64_t number, SampleBlock* block) const {
  for (uint32_t i = 0; i < options_.dense; ++i) {
    const double u = UniformDouble(Philox(options_.seed, number, kDense + i));
    block->dense.push_back(static_cast<float>(2 * u - 1));
  }
  SparseColumn& column = block->sparse[0];
  for (uint32_t slot = 0; slot < options_.slots; ++slot) {
    column.keys.push_back(DrawKey(number, slot));
    column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
  }
  const double logit = Logit(block->dense.data() + block->dense.size() - options_.dense,
                             column.keys.data() + column.keys.size() - options_.slots);
  const double probability = 1 / (1 + std::exp(-logit));
  const double u = UniformDouble(Philox(options_.seed, number, kLabel));
  block->label.push_back(u < probability ? 1 : 0);
  ++block->size;
  return probability;
}

Key SyntheticModel::DrawKey(uint64_t number, uint32_t slot) const {
  const double u = UniformDouble(Philox(options_.seed, number, kKey + slot));
  const double power = 1 - options_.alpha;
  const double keys = static_cast<double>(options_.keys_per_slot);
  const double y = std::pow((std::pow(keys, power) - 1) * u + 1, 1 / power);
  const uint64_t rank =
      std::clamp<uint64_t>(static_cast<uint64_t>(std::llround(y)), 1, options_.keys_per_slot);
  return slot * options_.keys_per_slot + rank - 1;
}

double SyntheticModel::Logit(const float* dense, const Key* keys) const {
  double logit = options_.bias;
  for (uint32_t i = 0; i < options_.dense; ++i) logit += dense_weights_[i] * dense[i];
  for (uint32_t s = 0; s < options_.slots; ++s) {
    logit += options_.weight_scale * Normal(keys[s], kKeyWeight);
  }
  for (uint32_t f = 0; f < options_.factors; ++f) {
    double sum = 0, squares = 0;  // sum_{s<t} v_s v_t = (sum^2 - sum of squares) / 2
    for (uint32_t s = 0; s < options_.slots; ++s) {
      const double v = options_.factor_scale * Normal(keys[s], kFactor + f);
      sum += v;
      squares += v * v;
    }
    logit += (sum * sum - squares) / 2;
  }
  return logit;
}

struct Outcome {
  double probability = 0;
  bool positive = false;
};

// Area under the ROC curve of the probabilities; ties count half. A sample counts as positive with
// weight `weight(outcome)` and as negative with the rest. Sorts `outcomes`.
template <typename Weight>
double Area(std::vector<Outcome>* outcomes, const Weight& weight) {
  std::sort(outcomes->begin(), outcomes->end(),
            [](const Outcome& a, const Outcome& b) { return a.probability < b.probability; });
  double area = 0, positives = 0, negatives = 0;
  for (size_t i = 0; i < outcomes->size();) {
    double tied_positives = 0, tied_negatives = 0;
    const double probability = (*outcomes)[i].probability;
    for (; i < outcomes->size() && (*outcomes)[i].probability == probability; ++i) {
      const double w = weight((*outcomes)[i]);
      tied_positives += w;
      tied_negatives += 1 - w;
    }
    area += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  return positives == 0 || negatives == 0 ? 0.5 : area / (positives * negatives);
}

absl::Status Check(const SyntheticOptions& options) {
  const auto invalid = [](absl::string_view why) { return absl::InvalidArgumentError(why); };
  if (options.train_samples == 0 || options.test_samples == 0) {
    return invalid("a synthetic data set needs at least one training and one test sample");
  }
  if (options.slots == 0 || options.keys_per_slot == 0) {
    return invalid("a synthetic data set needs at least one slot and one key per slot");
  }
  if (!(options.alpha > 0) || options.alpha == 1) return invalid("alpha must be above 0 and not 1");
  if (options.samples_per_file == 0) return invalid("samples_per_file must be at least 1");
  const Key reserved = options.wide_keys ? kReservedKey64 : kReservedKey32;
  if (options.keys_per_slot > reserved / options.slots) {
    return invalid("the keys of all slots do not fit the key width");
  }
  return absl::OkStatus();
}

// Writes samples [first, first + count) as a data set.
absl::StatusOr<std::vector<Outcome>> WriteSamples(FileSystem& files, const SyntheticModel& model,
                                                  const std::string& folder,
                                                  const NormWriterOptions& format,
                                                  const SyntheticOptions& options, uint64_t first,
                                                  uint64_t count) {
  NormSetWriter writer(files, folder, format, options.samples_per_file);
  std::vector<Outcome> outcomes;
  SampleBlock block;
  while (outcomes.size() < count) {
    if (options.interrupted != nullptr && *options.interrupted) {
      return absl::CancelledError("interrupted: nothing was written");
    }
    block.Reset(1);
    const uint64_t end = std::min<uint64_t>(count, outcomes.size() + kSamplesPerWrite);
    while (outcomes.size() < end) {
      const double probability = model.Append(first + outcomes.size(), &block);
      outcomes.push_back({probability, block.label.back() > 0});
    }
    CISTERN_RETURN_IF_ERROR(writer.Append(block));
  }
  CISTERN_RETURN_IF_ERROR(writer.Close());
  return outcomes;
}

uint64_t Positives(const std::vector<Outcome>& outcomes) {
  return static_cast<uint64_t>(
      std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& x) { return x.positive; }));
}

}  // namespace

absl::StatusOr<SyntheticSummary> WriteSynthetic(const SyntheticOptions& options) {
  CISTERN_RETURN_IF_ERROR(Check(options));
  LocalFileSystem own;
  FileSystem& files = options.files == nullptr ? own : *options.files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFolder> out,
                           OutputFolder::Create(files, options.out, options.overwrite));
  CISTERN_ASSIGN_OR_RETURN(const std::string train_folder, out->Subfolder("train"));
  CISTERN_ASSIGN_OR_RETURN(const std::string test_folder, out->Subfolder("test"));
  SyntheticSummary summary;
  summary.shape = {1, options.dense, {options.slots}, {options.slots}};
  const NormWriterOptions format = {options.check, options.wide_keys, summary.shape};
  const SyntheticModel model(options);
  CISTERN_ASSIGN_OR_RETURN(
      const std::vector<Outcome> train,
      WriteSamples(files, model, train_folder, format, options, 0, options.train_samples));
  CISTERN_ASSIGN_OR_RETURN(std::vector<Outcome> test,
                           WriteSamples(files, model, test_folder, format, options,
                                        options.train_samples, options.test_samples));
  CISTERN_RETURN_IF_ERROR(out->Publish());
  summary.train_list = options.out + "/train/file_list.txt";
  summary.test_list = options.out + "/test/file_list.txt";
  summary.train_positives = Positives(train);
  summary.test_positives = Positives(test);
  summary.best_auc = Area(&test, [](const Outcome& x) { return x.positive ? 1.0 : 0.0; });
  summary.expected_auc = Area(&test, [](const Outcome& x) { return x.probability; });
  for (const Outcome& x : test) {
    summary.best_logloss -= std::log(x.positive ? x.probability : 1 - x.probability);
  }
  summary.best_logloss /= static_cast<double>(test.size());
  return summary;
}

}  // namespace cistern::data
