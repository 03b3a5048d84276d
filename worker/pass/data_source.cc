#include "worker/pass/data_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/machine_limits.h"
#include "common/value/accessor.h"
#include "worker/data/feed/open_feed.h"
#include "worker/data/format/data_streams.h"
#include "worker/data/source/shuffled_reader.h"
#include "worker/data/storage/storage.h"
#include "worker/model/batch/device_keys.h"
#include "worker/model/batch/row_stage.h"
#include "worker/pass/pass_coordinator.h"
#include "worker/pass/sample_weights.h"
#include "worker/pass/shared_pass.h"

namespace cistern {
namespace {

// The threads that prepare passes: they run beside those that train.
constexpr int kMaxReadingThreads = 8;

// Samples of the first pass of a run: read, and their rows pulled, in a fraction of a second.
constexpr size_t kFirstSamples = size_t{1} << 17;

// The bytes of one distinct key, by input: its values in all tables that read the input.
absl::StatusOr<std::vector<size_t>> ValueBytes(const model::ModelConfig& config) {
  std::vector<size_t> bytes(config.data.sparse.size(), 0);
  for (const model::EmbeddingConfig& embedding : config.embeddings) {
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(embedding.spec));
    bytes[embedding.input] += layout.full_floats() * sizeof(float) + 1;
  }
  return bytes;
}

// A file that the user named and that is missing is a wrong argument, not bad data.
absl::Status OfNamed(const data::DataSetOptions& data, const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat("data '", data.source, "': ", status.message(),
                                                 data::IsRemote(data.source)
                                                     ? ": correct the path"
                                                     : "; paths count from the current folder"));
}

absl::StatusOr<std::unique_ptr<data::SampleReader>> OpenNamed(const data::DataSetOptions& data) {
  absl::StatusOr<std::unique_ptr<data::SampleReader>> reader = data::OpenDataSet(data);
  if (!reader.ok()) return OfNamed(data, reader.status());
  return reader;
}

// Opens a stream of an epoch. buffer: samples of the shuffle buffer over all streams; 0: none.
absl::StatusOr<std::unique_ptr<data::SampleReader>> OpenStream(const data::DataSetOptions& data,
                                                               const data::DataStreams& streams,
                                                               uint64_t buffer, uint32_t epoch,
                                                               uint32_t stream) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::SampleReader> reader, streams.Open(epoch, stream));
  if (buffer == 0) return reader;
  return data::Shuffled(
      std::move(reader), data.shape.slot_nums.size(),
      {std::max<uint64_t>(1, buffer / streams.size()), data.shuffle_seed, epoch, stream});
}

// Whether training counts how often each row of the table occurs.
bool CountsOccurrences(const v1::TableSpec& spec) {
  return HasStatistics(spec) || CountsSightings(spec.bounds());
}

// The device collector of the keys of a run's passes; null: the host collects them. A GPU collects
// keys unless several workers count shows or sightings, which the host counts per occurrence.
absl::StatusOr<std::unique_ptr<data::KeyCollector>> CollectorOf(const model::ModelConfig& config,
                                                                DeviceContext& device,
                                                                group::ProcessGroup* group) {
  const size_t inputs = config.data.sparse.size();
  if (device.kind() == DeviceKind::kCpu) return std::unique_ptr<data::KeyCollector>();
  // Segments that a GPU builds do not say which key of an output an occurrence is.
  if (!config.cistern.key_weights.empty()) return data::KeyCollector::OnHost(inputs);
  if (group == nullptr) return model::CollectKeysOn(device, inputs);
  for (const model::EmbeddingConfig& embedding : config.embeddings) {
    if (CountsOccurrences(embedding.spec)) return std::unique_ptr<data::KeyCollector>();
  }
  return model::CollectSharedKeysOn(device, inputs);
}

absl::StatusOr<std::unique_ptr<data::PassSource>> Open(
    const model::ModelConfig& config, const data::DataSetOptions& data, const PassMemory& memory,
    DeviceContext& device, group::ProcessGroup* group, data::PassOptions options,
    const data::PassCursor& start, data::PassSource::OpenStream open) {
  std::vector<data::SequenceSlots> sequences;
  options.shape = data.shape;
  for (size_t i = 0; i < config.data.sparse.size(); ++i) {
    sequences.push_back(config.data.sparse[i].sequences);
    options.shape.slot_nums[i] = config.data.sparse[i].places();
  }
  options.byte_budget = memory.bytes;
  options.device_bound = memory.device_bound;
  options.batch_budget = memory.batch_bytes;
  CISTERN_ASSIGN_OR_RETURN(options.value_bytes, ValueBytes(config));
  std::unique_ptr<data::PassCoordinator> coordinator;
  if (group != nullptr) {
    options.part = group->rank();
    options.parts = group->size();
    coordinator = CoordinatorOf(*group, options.value_bytes);
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::KeyCollector> keys,
                           CollectorOf(config, device, group));
  return std::make_unique<data::PassSource>(
      options,
      [open = std::move(open), sequences, slot_nums = data.shape.slot_nums](
          uint32_t epoch, uint32_t stream) -> absl::StatusOr<std::unique_ptr<data::SampleReader>> {
        CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::SampleReader> reader, open(epoch, stream));
        return data::WithPlaces(std::move(reader), sequences, slot_nums);
      },
      start, std::move(keys), std::move(coordinator));
}

data::DataSetOptions TrainingDataOf(const model::ModelConfig& config, data::BadData* bad_data) {
  data::DataSetOptions data = model::DataSetOf(config, config.data.source);
  data.num_samples = config.data.num_samples;
  data.keysets = config.data.keysets;
  data.labels = LabelRuleOf(config);
  data.shuffle_files = config.cistern.shuffle_files;
  data.shuffle_seed = config.solver.seed;
  data.bad_data = config.cistern.skips_bad_data ? bad_data : nullptr;
  return data;
}

data::FileCompletes CompletesOf(const model::StreamConfig& stream) {
  return stream.complete == "age"      ? data::FileCompletes::kByAge
         : stream.complete == "marker" ? data::FileCompletes::kByMarker
                                       : data::FileCompletes::kByName;
}

absl::StatusOr<std::unique_ptr<data::FeedSource>> OpenStreamSource(const model::ModelConfig& config,
                                                                   const data::DataSetOptions& data,
                                                                   data::FeedStatus* status) {
  const model::StreamConfig& stream = *config.cistern.stream;
  data::FeedSourceOptions options;
  options.source = stream.source;
  options.recipe = stream.recipe;
  options.data = data;
  options.completes = CompletesOf(stream);
  options.age_seconds = stream.age_seconds;
  options.partitions = config.cistern.streams;
  options.properties = stream.properties;
  options.skips_lost = stream.skips_lost;
  options.status = status;
  absl::StatusOr<std::unique_ptr<data::FeedSource>> source = data::OpenFeedSource(options);
  if (!source.ok()) return AddContext(source.status(), "cistern.stream");
  return source;
}

// Makes the slices of a stream the epochs of `options`. start: is put into the order of its
// partitions.
absl::StatusOr<std::shared_ptr<data::Feed>> OpenFeed(
    const model::ModelConfig& config, const data::DataSetOptions& data, const PassMemory& memory,
    const group::ProcessGroup* group, const FeedCalls& calls, data::PassOptions* options,
    data::DataPlace* start) {
  const model::StreamConfig& stream = *config.cistern.stream;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::FeedSource> source,
                           OpenStreamSource(config, data, calls.status));
  data::FeedOptions feed;
  feed.seconds = stream.seconds;
  feed.samples = stream.samples;
  // Beside its samples, a pass holds batches and rows.
  const uint64_t bytes = memory.batch_bytes > 0 ? memory.batch_bytes : memory.bytes;
  feed.bytes = std::max<uint64_t>(1, bytes / 4);
  feed.ends_when_empty = stream.ends_when_empty;
  feed.inputs = data.shape.slot_nums.size();
  if (group != nullptr) {
    feed.part = group->rank();
    feed.parts = group->size();
  }
  CISTERN_ASSIGN_OR_RETURN(
      std::shared_ptr<data::Feed> opened,
      data::Feed::Create(feed, std::move(source), calls.stops, calls.status, start));
  options->endless = opened;
  options->streams = opened->streams();
  options->first_samples = 0;
  return opened;
}

absl::Status ReadFirst(const data::DataSetOptions& data) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<data::SampleReader> reader, OpenNamed(data));
  data::SampleBlock block;
  block.Reset(data.shape.slot_nums.size());
  const absl::StatusOr<size_t> got = reader->Read(1, &block);  // opens a remote file
  if (!got.ok()) return OfNamed(data, got.status());
  if (*got > 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("data '", data.source, "': holds no sample; name files that do"));
}

}  // namespace

data::LabelRule LabelRuleOf(const model::ModelConfig& config) {
  for (const model::LayerConfig& layer : config.layers) {
    if (layer.type == "MultiCrossEntropyLoss") return data::LabelRule::kProbabilityOrNone;
  }
  return data::LabelRule::kProbability;
}

absl::Status CheckTrainingData(const model::ModelConfig& config) {
  data::BadData bad_data;
  data::DataSetOptions data = TrainingDataOf(config, &bad_data);
  if (config.cistern.stream) {
    CISTERN_RETURN_IF_ERROR(OpenStreamSource(config, data, nullptr).status());
  } else {
    CISTERN_RETURN_IF_ERROR(AddContext(ReadFirst(data), "layers[0].source"));
  }
  if (config.data.eval_source.empty()) return absl::OkStatus();
  data = model::DataSetOf(config, config.data.eval_source);
  data.num_samples = config.data.eval_num_samples;
  data.labels = LabelRuleOf(config);
  return AddContext(ReadFirst(data), "layers[0].eval_source");
}

std::optional<uint64_t> SamplesOfEpoch(const model::ModelConfig& config) {
  if (config.cistern.stream) return std::nullopt;
  data::DataSetOptions data = model::DataSetOf(config, config.data.source);
  data.num_samples = config.data.num_samples;
  const absl::StatusOr<std::unique_ptr<data::SampleReader>> reader = data::OpenDataSet(data);
  return reader.ok() ? (*reader)->Samples() : std::nullopt;
}

std::string FewStreamsWarning(const model::ModelConfig& config, uint64_t workers) {
  const uint64_t wanted = config.cistern.streams;
  if (wanted <= 1 || workers <= 1) return "";
  uint64_t has = wanted;  // if there are fewer files, they are divided
  if (config.cistern.skips_bad_data) {
    data::BadData bad_data;
    const auto streams =
        data::DataStreams::Divide(TrainingDataOf(config, &bad_data), config.cistern.streams);
    if (!streams.ok()) return "";
    has = streams->size();
  }
  if (has >= workers) return "";
  return absl::StrCat("the training data has ", has, has == 1 ? " stream" : " streams", " for ",
                      workers, " workers: ", workers - has, " of them will read nothing; ",
                      has < wanted ? "write the data to more files" : "raise cistern.streams",
                      ", or set cistern.streams=1, so that all workers read");
}

PassMemory PassMemoryOn(const DeviceContext& device, const model::ModelConfig& config) {
  const uint64_t host = config.cistern.pass_memory_mb << 20;
  if (device.kind() == DeviceKind::kCpu) return {host, false, 0};
  // Leaves 1/16 for CUDA's libraries, which allocate later.
  const uint64_t left = (device.pool().cap_bytes() - device.pool().bytes()) / 16 * 15;
  // Three stages carry rows: of the trainer, the pipeline and the committer. A pass smaller than a
  // chunk uses smaller chunks.
  constexpr uint64_t kChunks = 3 * model::RowStage::kChunks,
                     kStages = kChunks * model::RowStage::kChunkBytes;
  const uint64_t most = std::max(left > kStages ? (left - kStages) / 4 : 0, left / (4 + kChunks));
  const uint64_t wanted = config.cistern.device_memory_mb << 20;
  const bool device_bound = wanted == 0 || most < wanted;
  return {device_bound ? most : wanted, device_bound, host};
}

absl::StatusOr<std::unique_ptr<data::PassSource>> OpenTrainingData(
    const model::ModelConfig& config, const PassMemory& memory, DeviceContext& device,
    group::ProcessGroup* group, const data::PassCursor& start, data::BadData* bad_data,
    data::ReadCounts* counts, const FeedCalls& feed) {
  data::PassOptions options;
  options.batchsize = config.solver.batchsize;
  options.max_batches = config.solver.max_iter;
  options.num_epochs = config.solver.num_epochs;
  options.shuffle = config.cistern.shuffle;
  options.shuffle_seed = config.solver.seed;
  options.cut_every = config.solver.snapshot;
  options.first_samples = kFirstSamples;
  options.threads = std::min(CoreCount(), kMaxReadingThreads);
  // Samples that are left out are counted where they are read, so reading stays in step.
  options.read_ahead = !config.cistern.skips_bad_data;
  data::DataSetOptions data = TrainingDataOf(config, bad_data);
  data.counts = counts;
  if (config.cistern.stream) {
    data::PassCursor cursor = start;
    CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<data::Feed> opened,
                             OpenFeed(config, data, memory, group, feed, &options, &cursor.next));
    return Open(config, data, memory, device, group, options, cursor,
                [opened](uint32_t, uint32_t stream) { return opened->Open(stream); });
  }
  const uint64_t buffer = config.cistern.shuffle_buffer;
  absl::StatusOr<data::DataStreams> streams =
      data::DataStreams::Divide(data, config.cistern.streams);
  if (!streams.ok()) return OfNamed(data, streams.status());
  options.streams = streams->size();
  return Open(
      config, data, memory, device, group, options, start,
      [data, buffer, streams = *std::move(streams)](
          uint32_t epoch, uint32_t stream) -> absl::StatusOr<std::unique_ptr<data::SampleReader>> {
        absl::StatusOr<std::unique_ptr<data::SampleReader>> reader =
            OpenStream(data, streams, buffer, epoch, stream);
        if (!reader.ok()) return OfNamed(data, reader.status());
        return reader;
      });
}

absl::StatusOr<std::unique_ptr<data::PassSource>> OpenEvaluationData(
    const model::ModelConfig& config, const PassMemory& memory, DeviceContext& device,
    group::ProcessGroup* group, data::LabelRule labels, const std::vector<std::string>& files,
    uint64_t max_batches, const data::PassCursor& start, data::PassSource::OpenReader open) {
  data::PassOptions options;
  options.batchsize = config.solver.batchsize_eval;
  options.max_batches = max_batches;
  options.repeat = false;
  options.segments = false;
  std::string source = files.empty() ? config.data.eval_source : absl::StrJoin(files, ",");
  if (source.empty() && open == nullptr) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            config.path,
            ": layers[0].eval_source: missing; name the evaluation data there or in this call")),
        {"data"});
  }
  data::DataSetOptions data = model::DataSetOf(config, source);
  data.labels = labels;
  if (files.empty()) data.num_samples = config.data.eval_num_samples;
  return Open(config, data, memory, device, group, options, start,
              [data, open = std::move(open)](uint32_t epoch, uint32_t) {
                return open == nullptr ? OpenNamed(data) : open(epoch);
              });
}

absl::StatusOr<std::unique_ptr<data::Pass>> NextPass(data::PassSource& source,
                                                     const model::ModelConfig& config,
                                                     group::ProcessGroup* group, PassUse use) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::Pass> pass, source.Next());
  if (pass == nullptr) return pass;
  if (config.cistern.sample_weights) {
    TakeWeights(pass.get());
    if (use == PassUse::kTrain) CISTERN_RETURN_IF_ERROR(ScaleWeights(group, pass.get()));
  }
  if (group == nullptr) return pass;
  ExchangeOptions options;
  options.segments = use == PassUse::kTrain;
  options.keep_keys.resize(config.data.sparse.size());
  options.count_clicks.resize(config.data.sparse.size());
  if (use == PassUse::kTrain) {
    for (const model::EmbeddingConfig& embedding : config.embeddings) {
      if (CountsOccurrences(embedding.spec)) {
        options.count_clicks[embedding.input] = true;
      }
    }
  } else if (config.cistern.gauc_slot) {
    options.keep_keys[config.cistern.gauc_slot->input] = true;
  }
  CISTERN_RETURN_IF_ERROR(ExchangeRows(*group, options, pass.get()));
  return pass;
}

}  // namespace cistern
