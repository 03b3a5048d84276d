// A fleet as Python holds it: connected servers, or servers in this process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "cli/session/fleet_session.h"
#include "common/base/status.h"
#include "python/binding/arrays.h"
#include "python/binding/errors.h"

namespace cistern::python {

// Threads: any Python thread. Verbs of a pass take turns; pulls run beside them.
class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  // flags.servers empty: embedded servers, which keep their commits below `state_root` if it is not
  // empty. Throws StatusError.
  static std::shared_ptr<Fleet> Open(const FleetFlags& flags, const std::string& state_root);
  ~Fleet();

  // The client, for a call of this process. Throws StatusError if the fleet was closed, was made in
  // another process (gRPC does not survive a fork), or lost a call to Ctrl-C.
  ParameterClient& client();
  void Close();
  bool closed() const { return session_ == nullptr; }

  // Runs a verb on this fleet without the GIL, one at a time, and throws its error. kept: objects
  // that `call` uses. A fleet of other processes can hang, so Ctrl-C abandons the call.
  void Run(std::function<absl::Status(ParameterClient&)> call,
           std::shared_ptr<void> kept = nullptr);
  // The same for a read, beside other calls.
  void Read(std::function<absl::Status(ParameterClient&)> call,
            std::shared_ptr<void> kept = nullptr);

  // Claims the fleet as its only writer: a new term, which drops what was staged and takes every
  // server to the newest durable commit. For use in Run.
  absl::Status Claim();
  // Opens a pass unless one is open. For use in Run.
  absl::Status Begin();
  bool pass_is_open() const { return pass_is_open_; }
  // For use in Run, after a commit or an abort.
  void PassEnded() { pass_is_open_ = false; }
  // The same after a failure: the next pass begins with a claim, because a server may have been
  // restarted.
  void PassFailed() { pass_is_open_ = claimed_ = false; }

 private:
  explicit Fleet(bool remote);
  void RunWith(std::function<absl::Status(ParameterClient&)> call, std::shared_ptr<void> kept,
               bool alone);

  const pid_t process_;
  const bool remote_;
  std::unique_ptr<FleetSession> session_;
  absl::Mutex verbs_;  // held by Run; never while the GIL is taken
  bool claimed_ = false, pass_is_open_ = false;
  bool abandoned_ = false;  // Ctrl-C left a call behind
};

void BindFleet(nb::module_& module);

}  // namespace cistern::python
