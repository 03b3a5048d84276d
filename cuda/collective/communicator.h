// What processes that train one model compute together: sums of gradients, exchanges of rows.
//
// One interface, three implementations: over TCP between CPUs (worker/group/tcp_communicator.h),
// over NCCL between GPUs, and between GPUs through the host. All processes of a group make the same
// calls in the same order, with the same sizes.
//
//   CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
//   CISTERN_RETURN_IF_ERROR(peers->AllReduce(gradients, count, ElementType::kFloat, stream));
//
// The memory lies where the stream's device has it. On the CPU a call has ended when it returns. On
// a GPU it is enqueued, and Wait says how it ended. Errors name the rank that is at fault:
//   kUnavailable         it has ended or was killed
//   the code of GiveUp   it has given up
//   kDeadlineExceeded    it has not come to the call within the group's deadline
//   kFailedPrecondition  it is in another call, or in one of another size (on the CPU alone)
// After an error every later call answers with it: a group is not mended, a new one is made.
//
// Calls may be on several streams, if events let each run after the one before it (SideStream):
// NCCL asks for one order on all ranks, and calls that nothing orders may wait for each other for
// ever.
//
// Sums come out with the same bits at every rank and in every run: on the CPU the ranks' numbers
// are added in the order of ranks, in double (halves in float), and rounded once; on a GPU in
// NCCL's order.
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

// Threads: one at a time; Interrupt from any.
class Communicator {
 public:
  // Over NCCL on the GPU of `stream`, one process a GPU. Takes over `peers`, the same processes on
  // the CPU, which carries NCCL's id and barriers. deadline: how long a call waits for a process.
  // kInvalidArgument for the stream of a CPU; errors of CheckGpuGroups.
  static absl::StatusOr<std::unique_ptr<Communicator>> OnGpu(std::unique_ptr<Communicator> peers,
                                                             std::chrono::milliseconds deadline,
                                                             Stream& stream);

  // kUnimplemented in a build without NCCL, kNotFound if this machine has none.
  static absl::Status CheckGpuGroups();
  // On the GPU of `device` through this machine's memory and `peers`, which it takes: where there
  // is no NCCL. Every call waits for what its stream was given before.
  static std::unique_ptr<Communicator> ThroughHost(std::unique_ptr<Communicator> peers,
                                                   DeviceContext& device);

  virtual ~Communicator() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // data[i] = the sum of data[i] over the ranks. Integers wrap. data: [count].
  virtual absl::Status AllReduce(void* data, size_t count, ElementType type, Stream& stream) = 0;

  // Rank r gets send_bytes[r] bytes of `send`, whose parts lie one behind the other; what comes
  // from rank r has receive_bytes[r] bytes and lies in `receive` likewise. [size].
  virtual absl::Status AllToAll(const void* send, absl::Span<const size_t> send_bytes,
                                void* receive, absl::Span<const size_t> receive_bytes,
                                Stream& stream) = 0;

  // data of rank `root` goes to all.
  virtual absl::Status Broadcast(void* data, size_t bytes, int root, Stream& stream) = 0;

  // Returns when all ranks have come here, and what they enqueued before has run.
  virtual absl::Status Barrier(Stream& stream) = 0;

  // Waits until what was enqueued has run. On the CPU nothing is left.
  virtual absl::Status Wait(Stream& stream) = 0;
  // Waits for a place behind calls on `stream`; what was enqueued behind it may still run.
  virtual absl::Status Wait(Event& event, Stream& stream) = 0;

  // Ends the group: ranks that wait for this one, or come to a call, hear `why`.
  virtual void GiveUp(const absl::Status& why) = 0;
  // The same from any thread, on the CPU: a call that waits, or the next one, ends with `why`.
  virtual void Interrupt(const absl::Status& why) {}

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_, size_;
};

}  // namespace cistern
