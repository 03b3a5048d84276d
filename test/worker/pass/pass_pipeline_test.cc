#include "worker/pass/pass_pipeline.h"

#include <gtest/gtest.h>

#include <set>

#include "test/worker/client/embedded_fleet.h"
#include "test/worker/data/sample_list.h"
#include "test/worker/model/test_device.h"

namespace cistern {
namespace {

constexpr size_t kSamples = 10;  // of a pass

// The distinct keys of an input of the pass `pass`.
std::set<Key> KeysOf(const std::vector<data::Sample>& samples, size_t pass, size_t input) {
  std::set<Key> keys;
  for (size_t n = pass * kSamples; n < (pass + 1) * kSamples; ++n) {
    for (const std::vector<Key>& slot : samples[n].keys[input]) {
      keys.insert(slot.begin(), slot.end());
    }
  }
  return keys;
}

// Waits for what the pipeline's thread does on its own; null only if it never does.
std::shared_ptr<const ReadyPass::CarriedRows> AwaitShared(PassPipeline& pipeline) {
  for (int i = 0; i < 10'000; ++i) {
    if (auto shared = pipeline.SharedWithNext()) return shared;
    pipeline.IsReady(absl::Milliseconds(1));
  }
  return nullptr;
}

TEST(PassPipeline, KnowsTheRowsThatStayBeforeThePassIsCommitted) {
  constexpr size_t kPasses = 4;
  const std::vector<data::Sample> samples = data::MakeSamples(kPasses * kSamples, 20);
  for (const bool reads_ahead : {false, true}) {
    EmbeddedFleet fleet(2);
    auto client = Writer(fleet.Links());
    model::ModelConfig config;
    for (size_t input = 0; input < data::kSlots.size(); ++input) {
      config.embeddings.emplace_back().input = input;
    }
    data::PassOptions options = data::SmallPasses(kSamples);
    options.cut_every = 1;
    PassPipeline pipeline(
        config, *client, model::TestDevice(), nullptr,
        std::make_unique<data::PassSource>(
            options, [&](uint32_t) { return std::make_unique<data::ListReader>(samples, 1000); },
            data::PassCursor()),
        nullptr, reads_ahead);
    std::shared_ptr<ReadyPass> before;
    for (size_t pass = 0; pass < kPasses; ++pass) {
      IdleTimes idle;
      const auto ready = pipeline.Next(&idle);
      ASSERT_TRUE(ready.ok() && *ready != nullptr) << pass;
      before = *ready;
      if (pass + 1 == kPasses) break;
      const auto shared = AwaitShared(pipeline);
      ASSERT_NE(shared, nullptr) << "after pass " << pass;
      // The rows of pass 2 need the commit of pass 0, and so on.
      if (pass > 0) {
        EXPECT_FALSE(pipeline.IsReady(absl::ZeroDuration()));
        pipeline.Committed();
      }
      for (size_t e = 0; e < data::kSlots.size(); ++e) {
        const std::set<Key> next = KeysOf(samples, pass + 1, e);
        std::set<Key> expected, found;
        for (const Key key : KeysOf(samples, pass, e)) {
          if (next.count(key) > 0) expected.insert(key);
        }
        for (const Row row : (*shared)[e].from) found.insert(before->tables[e]->keys()[row]);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(found.size(), (*shared)[e].from.size());
        EXPECT_GT(found.size(), 0u);
      }
    }
    EXPECT_EQ(pipeline.SharedWithNext(), nullptr);
    IdleTimes idle;
    const auto end = pipeline.Next(&idle);
    EXPECT_TRUE(end.ok() && *end == nullptr);
    EXPECT_EQ(pipeline.SharedWithNext(), nullptr);
  }
}

}  // namespace
}  // namespace cistern
