// The NCCL communicator. NCCL is loaded when the first one is created. Processes meet over the
// CPU's communicator and keep its connections: they carry the ncclUniqueId, barriers and, after a
// failure, the check of which ranks are alive: NCCL does not report that.
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "cuda/collective/communicator.h"
#include "cuda/core/cuda_queue.h"

namespace cistern {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestPause{1};

// The library's functions under their own names.
struct Library {
  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&ncclCommFinalize) CommFinalize;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclGetErrorString) GetErrorString;
  decltype(&ncclAllReduce) AllReduce;
  decltype(&ncclBroadcast) Broadcast;
  decltype(&ncclSend) Send;
  decltype(&ncclRecv) Recv;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
};

// Never unloaded: the CUDA runtime keeps the kernels that the library registered.
absl::StatusOr<Library> Load() {
  void* file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) file = dlopen(CISTERN_NCCL_PATH, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot load NCCL: ", dlerror(),
                                            "; add the folder of libnccl.so.2 to LD_LIBRARY_PATH"));
  }
  Library library{};
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(file, symbol));
    if (function == nullptr) absl::StrAppend(&missing, " ", symbol);
  };
  find("ncclGetUniqueId", library.GetUniqueId);
  find("ncclCommInitRankConfig", library.CommInitRankConfig);
  find("ncclCommGetAsyncError", library.CommGetAsyncError);
  find("ncclCommFinalize", library.CommFinalize);
  find("ncclCommDestroy", library.CommDestroy);
  find("ncclCommAbort", library.CommAbort);
  find("ncclGetErrorString", library.GetErrorString);
  find("ncclAllReduce", library.AllReduce);
  find("ncclBroadcast", library.Broadcast);
  find("ncclSend", library.Send);
  find("ncclRecv", library.Recv);
  find("ncclGroupStart", library.GroupStart);
  find("ncclGroupEnd", library.GroupEnd);
  if (!missing.empty()) return absl::NotFoundError(absl::StrCat("libnccl.so.2 has no", missing));
  return library;
}

ncclDataType_t TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return ncclFloat32;
    case ElementType::kHalf:
      return ncclFloat16;
    case ElementType::kBfloat16:
      return ncclBfloat16;
    case ElementType::kDouble:
      return ncclFloat64;
    case ElementType::kInt64:
      return ncclInt64;
  }
  return ncclFloat32;
}

// The NCCL communicator is nonblocking (ncclConfig_t.blocking = 0): calls return at once, and the
// host polls ncclCommGetAsyncError until the call has completed or the deadline has passed.
class GpuCommunicator : public Communicator {
 public:
  GpuCommunicator(const Library& library, std::unique_ptr<Communicator> peers,
                  std::chrono::milliseconds deadline)
      : Communicator(peers->rank(), peers->size()),
        library_(library),
        peers_(std::move(peers)),
        deadline_(deadline) {}

  ~GpuCommunicator() override {
    if (comm_ == nullptr) return;
    if (status_.ok() && Ended(library_.CommFinalize(comm_), "finalizing NCCL").ok()) {
      library_.CommDestroy(comm_);
    } else if (comm_ != nullptr) {
      library_.CommAbort(comm_);
    }
  }

  // Uses the calling thread's current GPU.
  absl::Status Open() {
    ncclUniqueId id{};
    if (rank() == 0)
      CISTERN_RETURN_IF_ERROR(Ended(library_.GetUniqueId(&id), "creating the ncclUniqueId"));
    CISTERN_RETURN_IF_ERROR(peers_->Broadcast(&id, sizeof(id), 0, host_));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return Ended(library_.CommInitRankConfig(&comm_, size(), id, rank(), &config),
                 "joining the NCCL communicator");
  }

  absl::Status AllReduce(void* data, size_t count, ElementType type, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    return Ended(library_.AllReduce(data, data, count, TypeOf(type), ncclSum, comm_,
                                    stream.queue()->stream()),
                 "AllReduce");
  }

  absl::Status AllToAll(const void* send, absl::Span<const size_t> send_bytes, void* receive,
                        absl::Span<const size_t> receive_bytes, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    if (send_bytes.size() != static_cast<size_t>(size()) ||
        receive_bytes.size() != send_bytes.size()) {
      return absl::InvalidArgumentError(absl::StrCat("AllToAll: sizes for ", send_bytes.size(),
                                                     " and ", receive_bytes.size(),
                                                     " ranks in a group of ", size()));
    }
    const auto* from = static_cast<const char*>(send);
    auto* to = static_cast<char*>(receive);
    const cudaStream_t queue = stream.queue()->stream();
    ncclResult_t result = library_.GroupStart();
    const auto add = [&result](ncclResult_t next) {
      if (result == ncclSuccess || result == ncclInProgress) result = next;
    };
    for (int r = 0; r < size(); ++r) {
      const auto at = static_cast<size_t>(r);
      add(library_.Send(from, send_bytes[at], ncclInt8, r, comm_, queue));
      add(library_.Recv(to, receive_bytes[at], ncclInt8, r, comm_, queue));
      from += send_bytes[at];
      to += receive_bytes[at];
    }
    add(library_.GroupEnd());
    return Ended(result, "AllToAll");
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    return Ended(
        library_.Broadcast(data, data, bytes, ncclInt8, root, comm_, stream.queue()->stream()),
        "Broadcast");
  }

  absl::Status Barrier(Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Wait(stream));
    return status_ = peers_->Barrier(host_);
  }

  absl::Status Wait(Stream& stream) override {
    return WaitUntil(stream, [&]() -> absl::StatusOr<bool> {
      const cudaError_t asked = cudaStreamQuery(stream.queue()->stream());
      if (asked == cudaErrorNotReady) {
        cudaGetLastError();  // the runtime stores this as an error, too (CudaStatus)
        return false;
      }
      CISTERN_RETURN_IF_ERROR(WaitStatus(asked));
      return true;
    });
  }

  absl::Status Wait(Event& event, Stream& stream) override {
    return WaitUntil(stream, [&] { return event.HasHappened(); });
  }

  void Abort(const absl::Status& why) override {
    if (comm_ != nullptr) library_.CommAbort(comm_);
    comm_ = nullptr;
    if (status_.ok()) status_ = why;
    peers_->Abort(why);
  }

 private:
  // Most calls and steps complete within microseconds. A short wait therefore polls often; a wait
  // for a late rank sleeps.
  static void Pause(Clock::time_point since) {
    const Clock::duration waited = Clock::now() - since;
    if (waited < std::chrono::microseconds(200)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min<Clock::duration>(waited / 8, kLongestPause));
    }
  }

  // happened: queries the GPU.
  absl::Status WaitUntil(Stream& stream, const std::function<absl::StatusOr<bool>()>& happened) {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    CISTERN_CHECK(!stream.queue()->IsCaptured());
    const Clock::time_point start = Clock::now();
    for (;;) {
      const absl::StatusOr<bool> done = happened();
      if (!done.ok()) {
        stream.Record(done.status());
        return Fail(stream.status());
      }
      if (*done) return absl::OkStatus();
      CISTERN_RETURN_IF_ERROR(Ended(ncclSuccess, "waiting for other ranks"));
      if (Clock::now() > start + deadline_) return Fail(Late("waiting for other ranks"));
      Pause(start);
    }
  }

  absl::Status Check(Stream& stream) const {
    CISTERN_RETURN_IF_ERROR(status_);
    if (stream.queue() == nullptr) {
      return absl::InvalidArgumentError(
          "the NCCL communicator needs a GPU stream, not a CPU stream");
    }
    return stream.status();
  }

  absl::Status Late(const char* what) const {
    return absl::DeadlineExceededError(
        absl::StrCat(what, ": not completed after ", deadline_.count(), " ms"));
  }

  // Waits until NCCL has accepted the call, and returns any asynchronous error since the last one.
  absl::Status Ended(ncclResult_t result, const char* what) {
    const Clock::time_point start = Clock::now();
    if (comm_ != nullptr && (result == ncclSuccess || result == ncclInProgress)) {
      ncclResult_t now = result;
      for (;;) {
        const ncclResult_t asked = library_.CommGetAsyncError(comm_, &now);
        result = asked == ncclSuccess ? now : asked;
        if (result != ncclInProgress) break;
        if (Clock::now() > start + deadline_) return Fail(Late(what));
        Pause(start);
      }
    }
    if (result == ncclSuccess) return absl::OkStatus();
    return Fail(
        absl::InternalError(absl::StrCat(what, ": NCCL: ", library_.GetErrorString(result))));
  }

  // Ends the group. A barrier over the CPU connections finds the rank at fault: a rank that exited
  // has closed its connections, and one that hangs does not reach the barrier. Healthy ranks fail
  // too and therefore reach the barrier.
  absl::Status Fail(const absl::Status& status) {
    if (comm_ != nullptr) library_.CommAbort(comm_);
    comm_ = nullptr;
    const absl::Status who = peers_->Barrier(host_);
    status_ = who.ok() ? status : AddContext(who, status.message());
    return status_;
  }

  const Library library_;
  const std::unique_ptr<Communicator> peers_;
  const std::chrono::milliseconds deadline_;
  ncclComm_t comm_ = nullptr;
  Stream host_;  // for peers_
  absl::Status status_;
};

}  // namespace

absl::Status Communicator::CheckGpuGroups() {
  return Load().status();
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::OnGpu(
    std::unique_ptr<Communicator> peers, std::chrono::milliseconds deadline, Stream& stream) {
  if (stream.queue() == nullptr) {
    return absl::InvalidArgumentError("the NCCL communicator needs a GPU stream");
  }
  CISTERN_ASSIGN_OR_RETURN(const Library library, Load());
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(stream.queue()->gpu()), "cudaSetDevice"));
  auto communicator = std::make_unique<GpuCommunicator>(library, std::move(peers), deadline);
  CISTERN_RETURN_IF_ERROR(communicator->Open());
  return communicator;
}

}  // namespace cistern
