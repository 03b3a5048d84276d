// Shows what a job of app says while it works: its notes, and how much of it is done.
#pragma once

#include <string>

#include "app/job_calls.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "common/base/amount_text.h"

namespace cistern::cli {

// Threads: as Activity. Nobody else uses the console while this lives.
class JobConsole {
 public:
  explicit JobConsole(Console& console) : JobConsole(&console) {}
  // Null: nothing is shown.
  explicit JobConsole(Console* console) : activity_(console) {
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

// What a job says about the rows that it reads, until Ctrl-C: "reading  1.20M rows" on a terminal.
// console: outlives the job; its updating line is the caller's to erase.
inline app::JobCalls RowCallsOn(Console& console) {
  app::JobCalls calls;
  calls.note = [&console](const std::string& line) { console.Say(OneLine(line)); };
  calls.amount = [&console](const app::Amount& amount) {
    console.Update(absl::StrCat(amount.what, "  ", CountText(static_cast<double>(amount.done)), " ",
                                amount.unit));
  };
  calls.stop = CatchInterrupts();
  return calls;
}

}  // namespace cistern::cli
