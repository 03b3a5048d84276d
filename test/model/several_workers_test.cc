// A model of one worker that exchanges with itself: the way of several, on one device. What several
// train together is tested with real processes (test/integration).
#include "test/model/model_bench.h"
#include "test/model/model_texts.h"
#include "worker/team/shared_pass.h"

namespace cistern {
namespace {

constexpr size_t kRows = 12;

struct Team1 {
  Team1() {
    auto formed = Team::Form({0, 1, "", "test"}, std::chrono::seconds(10));
    EXPECT_TRUE(formed.ok()) << formed.status();
    team = *std::move(formed);
    auto joined = team->OnDevice(TestDevice());
    EXPECT_TRUE(joined.ok()) << joined.status();
    steps = *std::move(joined);
  }
  std::unique_ptr<Team> team;
  std::unique_ptr<Communicator> steps;
};

// The batch with what it takes from and gives to the one worker. Rows keep their numbers: the pass
// holds them all in this order.
Batch Exchanged(Team& team, const ModelBench& bench, Batch batch) {
  Pass pass;
  batch.all = batch.size;
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    KeyIndex keys;
    for (const Key key : bench.keys) keys.Add(key);
    pass.keys.emplace_back(std::move(keys));
  }
  const size_t inputs = batch.sparse.size();
  pass.batches.push_back(std::move(batch));
  const ExchangeOptions options = {true, std::vector<bool>(inputs),
                                   std::vector<bool>(inputs, true)};
  const absl::Status status = ExchangeRows(team, options, &pass);
  EXPECT_TRUE(status.ok()) << status;
  return std::move(pass.batches[0]);
}

void ExpectSameBits(const std::string& text, const std::vector<std::string>& overrides) {
  Team1 one;
  ModelBench alone(text, overrides, kRows), exchanging(text, overrides, kRows);
  auto model = Model::Create(exchanging.config, TestDevice(), one.steps.get());
  ASSERT_TRUE(model.ok()) << model.status();
  exchanging.model = *std::move(model);
  for (uint64_t step = 1; step <= 5; ++step) {
    const Batch batch = alone.batch(16 - step, static_cast<uint32_t>(step));
    const StepResult expected = alone.Train(batch, step);
    const StepResult result = exchanging.Train(Exchanged(*one.team, exchanging, batch), step);
    EXPECT_EQ(result.loss, expected.loss) << step;
    EXPECT_EQ(result.grad_norm, expected.grad_norm) << step;
  }
  for (int i = 0; i < alone.model->schema().dense_tables_size(); ++i) {
    EXPECT_EQ(exchanging.Dense(static_cast<size_t>(i)), alone.Dense(static_cast<size_t>(i)));
  }
  for (size_t i = 0; i < alone.tables.size(); ++i) {
    EXPECT_EQ(exchanging.Read(i).values, alone.Read(i).values) << i;
    EXPECT_EQ(exchanging.Read(i).full, alone.Read(i).full) << i;
  }
  const Batch batch = alone.batch(16, 77);
  EXPECT_EQ(exchanging.Predict(Exchanged(*one.team, exchanging, batch)), alone.Predict(batch));
}

TEST(SeveralWorkers, OneThatExchangesWithItselfTrainsTheSameBits) {
  for (const std::string& text : {DnnText(), DeepFmText(), TangledText(), DlrmText(), DcnText()}) {
    ExpectSameBits(text, {});
  }
}

TEST(SeveralWorkers, ClippedRegularizedAndScaledLikeOne) {
  ExpectSameBits(TangledText(), {"cistern.clip_norm=0.05", "cistern.embedding_l2=0.01"});
  ExpectSameBits(DnnText(), {"solver.mixed_precision=1024"});
}

TEST(SeveralWorkers, CtrRowsCountWhatTheBatchesSay) {
  ExpectSameBits(DnnText(), {R"(cistern.embeddings.emb={"accessor":"ctr","embedx_threshold":2,)"
                             R"("optimizer":{"type":"AdaGradShared"}})"});
}

}  // namespace
}  // namespace cistern
