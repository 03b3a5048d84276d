// Shows what a job of app says while it works: its notes, and how much of it is done.
#pragma once

#include <string>

#include "app/job_calls.h"
#include "cli/terminal/activity.h"

namespace cistern {

// Threads: as Activity. Nobody else uses the console while this lives.
class JobConsole {
 public:
  explicit JobConsole(Console& console) : JobConsole(&console) {}
  // Null: nothing is shown.
  explicit JobConsole(Console* console) : activity_(console, "", "", 0) {
    calls_.note = [this](const std::string& line) { activity_.Say(line); };
    calls_.amount = [this](const app::Amount& amount) {
      activity_.Show(amount.what, amount.unit, amount.done, amount.total);
    };
  }

  const app::JobCalls& calls() const { return calls_; }

 private:
  Activity activity_;
  app::JobCalls calls_;
};

}  // namespace cistern
