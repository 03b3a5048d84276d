#include "worker/model/batch/device_keys.h"

#include "common/base/hash.h"
#include "common/base/thread_limit.h"
#include "cuda/op/key/distinct_keys.h"
#include "cuda/op/key/key_index.h"
#include "worker/data/source/batch_builder.h"
#include "worker/model/batch/row_finder.h"

namespace cistern::model {
namespace {

absl::StatusOr<Memory> TakeKeys(MemoryPool& pool, size_t bytes) {
  return pool.Take(MemoryPlace::kDevice, bytes, "keys");
}

class GpuKeys : public data::KeyCollector {
 public:
  // shared: this is one of several workers.
  GpuKeys(DeviceContext& device, Stream stream, size_t inputs, bool shared)
      : device_(device), stream_(std::move(stream)), shared_(shared), inputs_(inputs) {}
  ~GpuKeys() override { stream_.Wait().IgnoreError(); }

  absl::Status Add(const data::SampleBlock& samples) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      CISTERN_RETURN_IF_ERROR(Add(samples.sparse[i].keys, &inputs_[i]));
    }
    return absl::OkStatus();
  }
  size_t size(size_t input) const override { return inputs_[input].merged_count; }
  absl::Span<const Key> added(size_t input) const override { return inputs_[input].added; }
  void Drop() override {}
  data::HostBatch Take(data::SampleBlock&& samples) override;
  absl::Status Finish(data::Pass* pass) override;

  bool wants_segments() const override { return false; }

 private:
  // The distinct keys of one input so far, mixed and sorted, without and with the last batch.
  struct Input {
    Memory held, merged;
    size_t held_count = 0, merged_count = 0;
    std::vector<Key> named, added;  // shared: the keys of `held`; those that `merged` adds to it
  };

  absl::Status Add(const std::vector<Key>& keys, Input* input);
  absl::Status CopyAdded(Input* input);
  // Builds the index of the keys in `held`.
  absl::StatusOr<std::shared_ptr<const DeviceKeys>> IndexOf(const Input& input);
  absl::Status FinishAlone(size_t i, data::Pass* pass);
  absl::Status FinishShared(size_t i, data::Pass* pass);
  absl::Status MakeRoom(size_t bytes, Memory* memory) {
    return MakeKeyRoom(bytes, device_, memory);
  }

  DeviceContext& device_;
  Stream stream_;
  const bool shared_;
  std::vector<Input> inputs_;
  Memory keys_, added_, scratch_;  // for the input that Add is processing
  Memory count_, host_count_;      // a uint64_t on the device, and pinned
  RowFinder finder_{device_, stream_};
};

absl::Status GpuKeys::Add(const std::vector<Key>& keys, Input* input) {
  if (host_count_.bytes() == 0) {
    CISTERN_ASSIGN_OR_RETURN(count_, TakeKeys(device_.pool(), sizeof(uint64_t)));
    CISTERN_ASSIGN_OR_RETURN(host_count_,
                             device_.pool().Take(MemoryPlace::kPinned, sizeof(uint64_t), "keys"));
  }
  const size_t held = input->held_count, count = keys.size();
  CISTERN_RETURN_IF_ERROR(MakeRoom(count * sizeof(Key), &keys_));
  CISTERN_RETURN_IF_ERROR(MakeRoom((held + count) * sizeof(uint64_t), &input->merged));
  if (shared_) CISTERN_RETURN_IF_ERROR(MakeRoom(count * sizeof(uint64_t), &added_));
  CISTERN_RETURN_IF_ERROR(
      MakeRoom(op::AddDistinctKeysScratchBytes(count, held, stream_), &scratch_));
  CopyToDevice(keys.data(), keys_.data(), count * sizeof(Key), stream_);
  op::AddDistinctKeys(static_cast<const Key*>(keys_.data()), count,
                      static_cast<const uint64_t*>(input->held.data()), held,
                      static_cast<uint64_t*>(input->merged.data()),
                      static_cast<uint64_t*>(count_.data()), static_cast<uint64_t*>(added_.data()),
                      scratch_.data(), stream_);
  CopyToHost(count_.data(), host_count_.data(), sizeof(uint64_t), stream_);
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
  input->merged_count = *static_cast<const uint64_t*>(host_count_.data());
  return shared_ ? CopyAdded(input) : absl::OkStatus();
}

absl::Status GpuKeys::CopyAdded(Input* input) {
  input->added.resize(input->merged_count - input->held_count);
  CopyToHost(added_.data(), input->added.data(), input->added.size() * sizeof(Key), stream_);
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
  for (Key& key : input->added) key = UnmixKey(key);
  return absl::OkStatus();
}

data::HostBatch GpuKeys::Take(data::SampleBlock&& samples) {
  for (Input& input : inputs_) {
    input.held.swap(input.merged);
    input.held_count = input.merged_count;
    input.named.insert(input.named.end(), input.added.begin(), input.added.end());
  }
  std::vector<std::vector<Key>> keys;
  for (data::SparseColumn& column : samples.sparse) keys.push_back(std::move(column.keys));
  data::HostBatch batch = data::MakeHostBatch(std::move(samples));
  for (size_t i = 0; i < keys.size(); ++i) {
    batch.sparse[i].keys = std::move(keys[i]);
    data::ReturnSlack(&batch.sparse[i].keys);
  }
  return batch;
}

absl::Status GpuKeys::Finish(data::Pass* pass) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(shared_ ? FinishShared(i, pass) : FinishAlone(i, pass));
    inputs_[i].held_count = inputs_[i].merged_count = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const DeviceKeys>> GpuKeys::IndexOf(const Input& input) {
  const size_t bytes = input.held_count * sizeof(uint64_t);
  CISTERN_ASSIGN_OR_RETURN(Memory mixed, TakeKeys(device_.pool(), bytes));
  CopyOnDevice(input.held.data(), mixed.data(), bytes, stream_);
  return DeviceKeys::Build(std::move(mixed), input.held_count, device_, stream_);
}

absl::Status GpuKeys::FinishAlone(size_t i, data::Pass* pass) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceKeys> finder, IndexOf(inputs_[i]));
  std::vector<Key> keys(inputs_[i].held_count);
  CopyToHost(inputs_[i].held.data(), keys.data(), keys.size() * sizeof(Key), stream_);
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
#pragma omp parallel for num_threads(LoopThreads())
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = UnmixKey(keys[k]);
  for (data::HostBatch& batch : pass->batches) batch.sparse[i].finder = finder;
  pass->keys.push_back(data::PassKeys::Ordered(std::move(keys)));
  return absl::OkStatus();
}

absl::Status GpuKeys::FinishShared(size_t i, data::Pass* pass) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceKeys> keys, IndexOf(inputs_[i]));
  pass->keys.emplace_back();
  data::CollectedKeys& collected = pass->collected.emplace_back();
  collected.keys = std::exchange(inputs_[i].named, {});
  CISTERN_ASSIGN_OR_RETURN(collected.places, finder_.Find(*keys, collected.keys));
  for (data::HostBatch& batch : pass->batches) {
    CISTERN_RETURN_IF_ERROR(finder_.FindRows(*keys, &batch.sparse[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DeviceKeys>> DeviceKeys::Build(Memory mixed, size_t count,
                                                                    DeviceContext& device,
                                                                    Stream& stream) {
  std::shared_ptr<DeviceKeys> made(new DeviceKeys(std::move(mixed), count));
  CISTERN_ASSIGN_OR_RETURN(made->index_,
                           TakeKeys(device.pool(), op::KeyIndexEntries(count) * sizeof(uint32_t)));
  op::BuildKeyIndex(static_cast<const uint64_t*>(made->mixed_.data()), count,
                    static_cast<uint32_t*>(made->index_.data()), stream);
  CISTERN_RETURN_IF_ERROR(stream.Wait());
  return std::shared_ptr<const DeviceKeys>(std::move(made));
}

void DeviceKeys::Find(const Key* keys, size_t count, Row* rows, Stream& stream) const {
  op::FindKeys(keys, count, static_cast<const uint64_t*>(mixed_.data()), count_,
               static_cast<const uint32_t*>(index_.data()), rows, stream);
}

absl::StatusOr<std::unique_ptr<data::KeyCollector>> CollectKeysOn(DeviceContext& device,
                                                                  size_t inputs) {
  CISTERN_ASSIGN_OR_RETURN(Stream stream, device.NewStream(StreamPriority::kBackground));
  return std::make_unique<GpuKeys>(device, std::move(stream), inputs, /*shared=*/false);
}

absl::StatusOr<std::unique_ptr<data::KeyCollector>> CollectSharedKeysOn(DeviceContext& device,
                                                                        size_t inputs) {
  CISTERN_ASSIGN_OR_RETURN(Stream stream, device.NewStream(StreamPriority::kBackground));
  return std::make_unique<GpuKeys>(device, std::move(stream), inputs, /*shared=*/true);
}

}  // namespace cistern::model
