#include "worker/pass/device_keys.h"

#include "common/hash.h"
#include "cuda/op/distinct_keys.h"
#include "cuda/op/key_index.h"
#include "worker/pass/batch_builder.h"

namespace cistern {
namespace {

absl::StatusOr<Memory> TakeKeys(MemoryPool& pool, size_t bytes) {
  return pool.Take(MemoryPlace::kDevice, bytes, "keys");
}

class GpuKeys : public KeyCollector {
 public:
  GpuKeys(DeviceContext& device, Stream stream, size_t inputs)
      : device_(device), stream_(std::move(stream)), inputs_(inputs) {}
  ~GpuKeys() override { stream_.Wait().IgnoreError(); }

  absl::Status Add(const SampleBlock& samples) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      CISTERN_RETURN_IF_ERROR(Add(samples.sparse[i].keys, &inputs_[i]));
    }
    return absl::OkStatus();
  }
  size_t size(size_t input) const override { return inputs_[input].merged_count; }
  void Drop() override {}
  Batch Take(SampleBlock&& samples) override;
  absl::StatusOr<std::vector<PassKeys>> Finish(std::vector<Batch>* batches) override;

  bool wants_segments() const override { return false; }

 private:
  // Of one input: the distinct keys so far, mixed and ordered, without and with the last batch.
  struct Input {
    Memory held, merged;
    size_t held_count = 0, merged_count = 0;
  };

  absl::Status Add(const std::vector<Key>& keys, Input* input);
  // Room for so many bytes. Whatever used it before must be over.
  absl::Status MakeRoom(size_t bytes, Memory* memory);
  absl::StatusOr<PassKeys> FinishInput(Input* input, size_t i, std::vector<Batch>* batches);

  DeviceContext& device_;
  Stream stream_;
  std::vector<Input> inputs_;
  Memory keys_, scratch_;      // of the input that is added
  Memory count_, host_count_;  // a uint64_t on the device, and pinned
};

absl::Status GpuKeys::MakeRoom(size_t bytes, Memory* memory) {
  if (memory->bytes() >= bytes) return absl::OkStatus();
  *memory = Memory();
  CISTERN_ASSIGN_OR_RETURN(*memory, TakeKeys(device_.pool(), bytes + bytes / 2));
  return absl::OkStatus();
}

absl::Status GpuKeys::Add(const std::vector<Key>& keys, Input* input) {
  if (host_count_.bytes() == 0) {
    CISTERN_ASSIGN_OR_RETURN(count_, TakeKeys(device_.pool(), sizeof(uint64_t)));
    CISTERN_ASSIGN_OR_RETURN(host_count_,
                             device_.pool().Take(MemoryPlace::kPinned, sizeof(uint64_t), "keys"));
  }
  const size_t held = input->held_count, count = keys.size();
  CISTERN_RETURN_IF_ERROR(MakeRoom(count * sizeof(Key), &keys_));
  CISTERN_RETURN_IF_ERROR(MakeRoom((held + count) * sizeof(uint64_t), &input->merged));
  CISTERN_RETURN_IF_ERROR(
      MakeRoom(op::AddDistinctKeysScratchBytes(count, held, stream_), &scratch_));
  CopyToDevice(keys.data(), keys_.data(), count * sizeof(Key), stream_);
  op::AddDistinctKeys(static_cast<const Key*>(keys_.data()), count,
                      static_cast<const uint64_t*>(input->held.data()), held,
                      static_cast<uint64_t*>(input->merged.data()),
                      static_cast<uint64_t*>(count_.data()), scratch_.data(), stream_);
  CopyToHost(count_.data(), host_count_.data(), sizeof(uint64_t), stream_);
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
  input->merged_count = *static_cast<const uint64_t*>(host_count_.data());
  return absl::OkStatus();
}

Batch GpuKeys::Take(SampleBlock&& samples) {
  for (Input& input : inputs_) {
    input.held.swap(input.merged);
    input.held_count = input.merged_count;
  }
  std::vector<std::vector<Key>> keys;
  for (SparseColumn& column : samples.sparse) keys.push_back(std::move(column.keys));
  Batch batch = MakeBatch(std::move(samples));
  for (size_t i = 0; i < keys.size(); ++i) {
    batch.sparse[i].keys = std::move(keys[i]);
    batch.sparse[i].keys.shrink_to_fit();
  }
  return batch;
}

absl::StatusOr<std::vector<PassKeys>> GpuKeys::Finish(std::vector<Batch>* batches) {
  std::vector<PassKeys> made;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(PassKeys keys, FinishInput(&inputs_[i], i, batches));
    made.push_back(std::move(keys));
    inputs_[i].held_count = inputs_[i].merged_count = 0;
  }
  return made;
}

absl::StatusOr<PassKeys> GpuKeys::FinishInput(Input* input, size_t i, std::vector<Batch>* batches) {
  const size_t count = input->held_count, bytes = count * sizeof(uint64_t);
  std::vector<Key> keys(count);
  CISTERN_ASSIGN_OR_RETURN(Memory mixed, TakeKeys(device_.pool(), bytes));
  CopyOnDevice(input->held.data(), mixed.data(), bytes, stream_);
  CopyToHost(input->held.data(), keys.data(), bytes, stream_);
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceKeys> finder,
                           DeviceKeys::Build(std::move(mixed), count, device_, stream_));
  for (Key& key : keys) key = UnmixKey(key);
  for (Batch& batch : *batches) batch.sparse[i].finder = finder;
  return PassKeys::Ordered(std::move(keys));
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

absl::StatusOr<std::unique_ptr<KeyCollector>> CollectKeysOn(DeviceContext& device, size_t inputs) {
  CISTERN_ASSIGN_OR_RETURN(Stream stream, device.NewStream());
  return std::make_unique<GpuKeys>(device, std::move(stream), inputs);
}

}  // namespace cistern
