// GPU collectives without NCCL: data is copied to the host, exchanged by the CPU communicator, and
// copied back. Same interface as the NCCL communicator, at the speed of host memory and network.
#include "cuda/collective/communicator.h"

namespace cistern {
namespace {

size_t SumOf(absl::Span<const size_t> bytes) {
  size_t sum = 0;
  for (const size_t part : bytes) sum += part;
  return sum;
}

class HostCommunicator : public Communicator {
 public:
  HostCommunicator(std::unique_ptr<Communicator> peers, DeviceContext& device)
      : Communicator(peers->rank(), peers->size()), peers_(std::move(peers)), device_(device) {}

  absl::Status AllReduce(void* data, size_t count, ElementType type, Stream& stream) override {
    const size_t bytes = count * BytesOf(type);
    CISTERN_RETURN_IF_ERROR(Bring(data, bytes, stream));
    CISTERN_RETURN_IF_ERROR(peers_->AllReduce(sent_.data(), count, type, host_));
    return Return(sent_, data, bytes, stream);
  }

  absl::Status AllToAll(const void* send, absl::Span<const size_t> send_bytes, void* receive,
                        absl::Span<const size_t> receive_bytes, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Bring(send, SumOf(send_bytes), stream));
    const size_t bytes = SumOf(receive_bytes);
    CISTERN_RETURN_IF_ERROR(MakeRoom(bytes, &received_));
    CISTERN_RETURN_IF_ERROR(
        peers_->AllToAll(sent_.data(), send_bytes, received_.data(), receive_bytes, host_));
    return Return(received_, receive, bytes, stream);
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Bring(data, bytes, stream));
    CISTERN_RETURN_IF_ERROR(peers_->Broadcast(sent_.data(), bytes, root, host_));
    return Return(sent_, data, bytes, stream);
  }

  absl::Status Barrier(Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(stream.Wait());
    return peers_->Barrier(host_);
  }

  absl::Status Wait(Stream& stream) override { return stream.Wait(); }
  absl::Status Wait(Event& event, Stream& stream) override {
    stream.Record(event.Wait());
    return stream.status();
  }

  void Abort(const absl::Status& why) override { peers_->Abort(why); }

 private:
  absl::Status MakeRoom(size_t bytes, Memory* memory) {
    if (memory->bytes() >= bytes) return absl::OkStatus();
    *memory = Memory();
    CISTERN_ASSIGN_OR_RETURN(
        *memory, device_.pool().Take(MemoryPlace::kPinned, bytes + bytes / 4, "exchanges"));
    return absl::OkStatus();
  }

  absl::Status Bring(const void* data, size_t bytes, Stream& stream) {
    CISTERN_RETURN_IF_ERROR(stream.Wait());  // the last call may still read the buffers
    CISTERN_RETURN_IF_ERROR(MakeRoom(bytes, &sent_));
    CopyToHost(data, sent_.data(), bytes, stream);
    return stream.Wait();
  }

  absl::Status Return(const Memory& from, void* data, size_t bytes, Stream& stream) {
    CopyToDevice(from.data(), data, bytes, stream);
    return stream.Wait();
  }

  const std::unique_ptr<Communicator> peers_;
  DeviceContext& device_;
  Stream host_;  // for peers_
  Memory sent_, received_;
};

}  // namespace

std::unique_ptr<Communicator> Communicator::ThroughHost(std::unique_ptr<Communicator> peers,
                                                        DeviceContext& device) {
  return std::make_unique<HostCommunicator>(std::move(peers), device);
}

}  // namespace cistern
