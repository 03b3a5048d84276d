#include "worker/report/run_event.h"

#include <cstddef>

namespace cistern::report {
namespace {

// In the order of the enums.
constexpr const char* kEventNames[] = {"train",  "pass", "eval",    "final",
                                       "resume", "lost", "recover", "warning"};
constexpr const char* kStopReasonNames[] = {"",         "max_iter",  "epochs",       "auc",
                                            "patience", "interrupt", "end of stream"};

template <typename Enum, size_t kCount>
std::optional<Enum> FindName(const char* const (&names)[kCount], absl::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const char* EventName(RunEvent event) {
  return kEventNames[static_cast<size_t>(event)];
}

std::optional<RunEvent> FindEvent(absl::string_view name) {
  return FindName<RunEvent>(kEventNames, name);
}

const char* StopReasonName(StopReason reason) {
  return kStopReasonNames[static_cast<size_t>(reason)];
}

std::optional<StopReason> FindStopReason(absl::string_view name) {
  return FindName<StopReason>(kStopReasonNames, name);
}

}  // namespace cistern::report
