// A fleet as Python holds it: connected servers, or servers in this process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "app/fleet/fleet_session.h"
#include "common/base/status.h"
#include "python/binding/arrays.h"
#include "python/binding/errors.h"

namespace cistern::python {

// Threads: any Python thread. Verbs of a pass take turns; pulls run beside them.
class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  // flags.servers empty: embedded servers, which keep their commits below `state_root` if it is not
  // empty. Throws StatusError.
  static std::shared_ptr<Fleet> Open(const app::FleetOptions& flags, const std::string& state_root);
  ~Fleet();

  // The session, for a call of this process, which keeps it: Close in another thread ends it only
  // once the call has ended. Throws StatusError if the fleet was closed, was made in another
  // process (gRPC does not survive a fork), or lost a call to Ctrl-C.
  std::shared_ptr<app::FleetSession> session();
  // The same for a caller that holds the GIL until it has done with the client.
  ParameterClient& client() { return session()->client(); }
  // Closes the fleet. Ends with the returned session, and the calls that keep it.
  std::shared_ptr<app::FleetSession> Close();
  bool closed() const { return session_ == nullptr; }

  using Call = std::function<absl::Status(ParameterClient&)>;
  // Runs a verb on this fleet without the GIL, one at a time, and throws its error. kept: objects
  // that `call` uses. Ctrl-C abandons the call. A fleet of other processes can hang, and is then
  // undefined; in this process the call ends in the background, and the next verb waits for it.
  void Run(Call call, std::shared_ptr<void> kept = nullptr);
  // The same for a read, beside other calls. Inside this process it is short, and Ctrl-C waits.
  void Read(Call call, std::shared_ptr<void> kept = nullptr);
  // Reads that take long inside this process, too.
  void ReadLong(Call call, std::shared_ptr<void> kept = nullptr);

  // Calls `call` for [begin, end) of n elements: for pieces inside this process, between which
  // Ctrl-C ends the work; for all of them at once where servers are elsewhere.
  using PieceCall = std::function<absl::Status(ParameterClient&, size_t begin, size_t end)>;
  void RunPieces(size_t n, PieceCall call, std::shared_ptr<void> kept);
  void ReadPieces(size_t n, PieceCall call, std::shared_ptr<void> kept);

  // Claims the fleet as its only writer: a new term, which drops what was staged and takes every
  // server to the newest durable commit. For use in Run.
  absl::Status Claim(ParameterClient& client);
  // Opens a pass unless one is open. For use in Run.
  absl::Status Begin(ParameterClient& client);
  bool pass_is_open() const { return pass_is_open_; }
  // For use in Run, after a commit or an abort.
  void PassEnded() { pass_is_open_ = push_failed_ = false; }
  // The same after a failure: the next pass begins with a claim, because a server may have been
  // restarted.
  void PassFailed() { pass_is_open_ = claimed_ = push_failed_ = false; }
  // For use in Run. A pass in which a push failed cannot be committed: kFailedPrecondition.
  void PushEnded(const absl::Status& status) { push_failed_ |= !status.ok(); }
  absl::Status CheckPushes() const;

 private:
  explicit Fleet(bool remote);
  // alone: the call is a verb. brief: not worth a thread, inside this process.
  void RunWith(Call call, std::shared_ptr<void> kept, bool alone, bool brief);
  void RunPiecesWith(size_t n, PieceCall call, std::shared_ptr<void> kept, bool alone);

  const pid_t process_;
  const bool remote_;
  std::shared_ptr<app::FleetSession> session_;  // changes under the GIL
  absl::Mutex verbs_;                           // held by Run; never while the GIL is taken
  bool claimed_ = false, pass_is_open_ = false, push_failed_ = false;
  bool abandoned_ = false;  // Ctrl-C left a call behind
};

void BindFleet(nb::module_& module);

}  // namespace cistern::python
