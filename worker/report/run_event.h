// What happens in a training run, and what ends it. Files of runs hold the names: metrics.jsonl
// those of events, run.json and positions those of ends (docs/formats.md).
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace cistern::report {

enum class RunEvent {
  kTrain,    // steps were trained
  kPass,     // a pass is committed
  kEval,     // the model was evaluated
  kFinal,    // the run ended
  kResume,   // the run continues from a commit
  kLost,     // a server or worker was lost, and the job waits if a pass was lost with it
  kRecover,  // training continues after a loss
  kWarning,  // the run has no error, but probably does not do what was meant
};

// "train", "pass", "eval", "final", "resume", "lost", "recover", "warning".
const char* EventName(RunEvent event);
// Nothing: no event has this name.
std::optional<RunEvent> FindEvent(absl::string_view name);

enum class StopReason {
  kNone,  // the run continues
  kMaxIter,
  kEpochs,
  kAuc,
  kPatience,
  kInterrupt,
  kEndOfStream,
};

// "" for kNone, "max_iter", "epochs", "auc", "patience", "interrupt", "end of stream".
const char* StopReasonName(StopReason reason);
// Nothing: no reason has this name.
std::optional<StopReason> FindStopReason(absl::string_view name);

}  // namespace cistern::report
