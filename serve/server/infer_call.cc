#include "serve/server/infer_call.h"

#include "absl/strings/match.h"

namespace cistern::serve {
namespace {

struct Unsupported {
  absl::string_view name, why;
};
constexpr Unsupported kUnsupported[] = {
    {"classification", "predictions are numbers: leave it out, and take the probabilities"},
    {"sequence_id", "each request is predicted by itself: leave it out"},
    {"sequence_start", "each request is predicted by itself: leave it out"},
    {"sequence_end", "each request is predicted by itself: leave it out"},
    {"priority", "requests are answered in the order in which they arrive: leave it out"},
    {"triton_enable_empty_final_response", "a response has one part: leave it out"},
};

}  // namespace

absl::Status CheckParameter(absl::string_view owner, absl::string_view name, bool has_no_effect) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(owner, " has the parameter ", Quoted(name),
                                                   ", which is not supported: ", why));
  };
  if (absl::StartsWith(name, "shared_memory_")) {
    return refuse("this server has no shared memory; send tensors in the request");
  }
  for (const Unsupported& unsupported : kUnsupported) {
    if (name == unsupported.name && !has_no_effect) return refuse(unsupported.why);
  }
  return absl::OkStatus();
}

}  // namespace cistern::serve
