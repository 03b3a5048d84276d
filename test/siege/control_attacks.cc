#include "absl/strings/str_cat.h"
#include "test/siege/attacks.h"
#include "test/siege/lies.h"

namespace cistern {
namespace {

// A claim with take_over is granted to everyone and ends the training, so it comes last.
bool IsLeftOut(const google::protobuf::Message& request) {
  const auto* claim = dynamic_cast<const v1::ClaimEpochRequest*>(&request);
  return claim != nullptr && claim->take_over();
}

void LieInVerb(const Siege& siege, const Verb& verb, std::vector<Stranger>& strangers) {
  for (Stranger& stranger : strangers) stranger.Look().IgnoreError();
  TryVerb(siege, "control", verb.name + " as the writer sends it", strangers[0], verb,
          *strangers[0].RequestOf(verb));
  size_t turn = 0;
  ForEachLie(*strangers[0].RequestOf(verb),
             [&](const std::string& what, const google::protobuf::Message& lie) {
               if (IsLeftOut(lie)) return;
               TryVerb(siege, "control", absl::StrCat(verb.name, " ", what),
                       strangers[turn++ % strangers.size()], verb, lie);
             });
}

}  // namespace

std::string TryVerb(const Siege& siege, const std::string& group, const std::string& name,
                    Stranger& stranger, const Verb& verb,
                    const google::protobuf::Message& request) {
  const absl::Status answer = verb.Call(stranger.control(), request);
  const bool granted = answer.ok() && !MayBeGranted(stranger, verb, request);
  if (!granted && IsMeant(answer)) {
    siege.report->Tried(group, name, true);
    return answer.ToString();
  }
  siege.report->Tried(
      group, name, false,
      absl::StrCat(verb.name, " to ", stranger.address(), " {",
                   request.ByteSizeLong() < 100000 ? request.ShortDebugString() : "large", "}"),
      answer.ToString());
  return answer.ToString();
}

void AttackControl(const Siege& siege) {
  std::vector<Stranger> strangers;
  for (size_t rank = 0; rank < siege.fleet->servers.size(); ++rank) {
    strangers.emplace_back(siege.address(rank));
  }
  for (const Verb& verb : Verbs()) {
    if (verb.name != "ClaimEpoch") LieInVerb(siege, verb, strangers);
  }
  // Last: a granted claim would leave no training to attack.
  LieInVerb(siege, VerbOf("ClaimEpoch"), strangers);
}

}  // namespace cistern
