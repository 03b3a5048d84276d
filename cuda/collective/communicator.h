// Collective operations of the process group that trains one model: sums of gradients and exchanges
// of rows.
//
// One interface, three implementations: TCP between CPUs (worker/group/tcp_communicator.h), NCCL
// between GPUs, and GPUs through the host. All ranks must make the same calls in the same order,
// with the same sizes.
//
//   CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
//   CISTERN_RETURN_IF_ERROR(peers->AllReduce(gradients, count, ElementType::kFloat, stream));
//
// Buffers are in the memory of the stream's device. On the CPU a call has finished when it returns.
// On a GPU it is enqueued, and Wait returns its result. Errors name the rank at fault:
//   kUnavailable         the rank exited or was killed
//   the code of Abort   the rank gave up
//   kDeadlineExceeded    the rank did not reach the call within the group's deadline
//   kFailedPrecondition  the rank is in another call, or in one with another size (CPU only)
// After an error every later call returns that error. A group cannot be repaired: create a new one.
//
// Calls may use several streams if events order them (SideStream). NCCL requires the same order on
// all ranks; unordered calls can deadlock.
//
// Sums have the same bits on every rank and in every run. On the CPU the values are added in rank
// order, in double (halves in float), and rounded once; on a GPU in NCCL's order.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "cuda/core/element_type.h"
#include "cuda/core/event.h"
#include "cuda/core/stream.h"

namespace cistern {

// Threads: one at a time; Interrupt from any thread.
class Communicator {
 public:
  // NCCL on the GPU of `stream`, one process per GPU. Takes over `peers`, the same group on the
  // CPU, which carries the ncclUniqueId and barriers. deadline: how long a call waits for a rank.
  // kInvalidArgument for a CPU stream; errors of CheckGpuGroups.
  static absl::StatusOr<std::unique_ptr<Communicator>> OnGpu(std::unique_ptr<Communicator> peers,
                                                             std::chrono::milliseconds deadline,
                                                             Stream& stream);

  // kUnimplemented in a build without NCCL, kNotFound if this machine does not have the library.
  static absl::Status CheckGpuGroups();
  // For GPUs without NCCL: stages through host memory and exchanges over `peers`, which it takes
  // over. Every call first waits for all work enqueued on its stream.
  static std::unique_ptr<Communicator> ThroughHost(std::unique_ptr<Communicator> peers,
                                                   DeviceContext& device);

  virtual ~Communicator() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // data[i] = the sum of data[i] over the ranks. Integers wrap. data: [count].
  virtual absl::Status AllReduce(void* data, size_t count, ElementType type, Stream& stream) = 0;

  // Sends send_bytes[r] bytes of `send` to rank r and receives receive_bytes[r] bytes from rank r.
  // The parts are contiguous in `send` and `receive`, in rank order. Sizes: [size].
  virtual absl::Status AllToAll(const void* send, absl::Span<const size_t> send_bytes,
                                void* receive, absl::Span<const size_t> receive_bytes,
                                Stream& stream) = 0;

  // Copies data of rank `root` to all ranks.
  virtual absl::Status Broadcast(void* data, size_t bytes, int root, Stream& stream) = 0;

  // Returns when all ranks have reached this call and their earlier work on `stream` has run.
  virtual absl::Status Barrier(Stream& stream) = 0;

  // Waits until all enqueued work has run. Returns at once on the CPU.
  virtual absl::Status Wait(Stream& stream) = 0;
  // Waits for `event`, recorded on `stream` after the calls of interest; later work may still run.
  virtual absl::Status Wait(Event& event, Stream& stream) = 0;

  // Ends the group: ranks that wait for this one, or make a call later, get the error `why`.
  virtual void Abort(const absl::Status& why) = 0;
  // The same from any thread, CPU only: the call in progress, or the next one, returns `why`.
  virtual void Interrupt(const absl::Status& why) {}

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_, size_;
};

}  // namespace cistern
