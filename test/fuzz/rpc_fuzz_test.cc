// The kept corpus of what servers and workers read from the network, as it is and changed at
// random: no crash, no hang, no exception, nothing changed by a call that was refused. The
// variables of reader_fuzz_test.cc.
#include <gtest/gtest.h>

#include "test/fuzz/meeting_targets.h"
#include "test/fuzz/rpc_targets.h"

namespace cistern {
namespace {

class RpcFuzz : public testing::TestWithParam<FuzzTarget> {};
INSTANTIATE_TEST_SUITE_P(Meeting, RpcFuzz, testing::ValuesIn(MeetingTargets()),
                         [](const auto& target) { return target.param.name; });
INSTANTIATE_TEST_SUITE_P(Rpc, RpcFuzz, testing::ValuesIn(RpcTargets()),
                         [](const auto& target) { return target.param.name; });

TEST_P(RpcFuzz, TheKeptCorpusIsAnsweredOrRefused) {
  RunCorpus(GetParam());
}

TEST_P(RpcFuzz, ChangedBytesAreAnsweredOrRefused) {
  RunChangedCorpus(GetParam(), 20000);
}

}  // namespace
}  // namespace cistern
