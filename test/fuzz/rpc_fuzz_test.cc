// Runs the kept corpus of network input for servers and workers, unchanged and with random
// mutations: no crash, no hang, no exception, and refused calls change nothing. Uses the
// environment variables of reader_fuzz_test.cc.
#include <gtest/gtest.h>

#include "test/fuzz/meeting_targets.h"
#include "test/fuzz/rpc_targets.h"
#include "test/fuzz/watch_targets.h"

namespace cistern {
namespace {

class RpcFuzz : public testing::TestWithParam<FuzzTarget> {};
INSTANTIATE_TEST_SUITE_P(Meeting, RpcFuzz, testing::ValuesIn(MeetingTargets()),
                         [](const auto& target) { return target.param.name; });
INSTANTIATE_TEST_SUITE_P(Rpc, RpcFuzz, testing::ValuesIn(RpcTargets()),
                         [](const auto& target) { return target.param.name; });
INSTANTIATE_TEST_SUITE_P(Watch, RpcFuzz, testing::ValuesIn(WatchTargets()),
                         [](const auto& target) { return target.param.name; });

TEST_P(RpcFuzz, AnswersOrRefusesTheCorpus) {
  RunCorpus(GetParam());
}

TEST_P(RpcFuzz, AnswersOrRefusesChangedBytes) {
  RunChangedCorpus(GetParam(), 20000);
}

}  // namespace
}  // namespace cistern
