// A model of one worker that exchanges rows with itself: the code path of several workers, on one
// device. Training with several workers is tested with real processes (test/integration).
#include <functional>

#include "cuda/op/dense/elementwise.h"
#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/batch/device_keys.h"
#include "worker/model/layer/device_buffer.h"
#include "worker/pass/shared_pass.h"

namespace cistern::model {
namespace {

constexpr size_t kSharedRows = 12;

struct OneWorker {
  OneWorker() {
    auto formed = group::ProcessGroup::Form({0, 1, "", {4711}}, std::chrono::seconds(10));
    EXPECT_TRUE(formed.ok()) << formed.status();
    group = *std::move(formed);
    auto joined = group->OnDevice(TestDevice());
    EXPECT_TRUE(joined.ok()) << joined.status();
    steps = *std::move(joined);
  }
  std::unique_ptr<group::ProcessGroup> group;
  std::unique_ptr<Communicator> steps;
};

// Runs the exchange of `pass`, which has one batch, with itself, and returns the batch. Row numbers
// do not change, because the pass has all keys in the same order. asked: by input, the keys of the
// batch.
data::HostBatch Exchanged(group::ProcessGroup& group, const ModelBench& bench,
                          const std::vector<std::vector<Key>>& asked, bool counts_clicks,
                          data::Pass pass) {
  pass.batches[0].all = pass.batches[0].size;
  const size_t inputs = asked.size();
  for (const std::vector<Key>& keys : asked) {
    data::OwnedKeys& owned = pass.owned.emplace_back();
    for (const Key key : bench.keys) owned.keys.Add(key);
    owned.asked.resize(1);
    for (const Key key : keys) owned.asked[0].push_back(owned.keys.Find(key));
  }
  const ExchangeOptions options = {true, std::vector<bool>(inputs),
                                   std::vector<bool>(inputs, counts_clicks)};
  const absl::Status status = ExchangeRows(group, options, &pass);
  EXPECT_TRUE(status.ok()) << status;
  return std::move(pass.batches[0]);
}

// Returns the batch with the rows that the single worker exchanges with itself.
data::HostBatch Exchanged(group::ProcessGroup& group, const ModelBench& bench,
                          data::HostBatch batch) {
  const std::vector<std::vector<Key>> asked(batch.sparse.size(), bench.keys);
  data::Pass pass;
  for (size_t i = 0; i < asked.size(); ++i) {
    data::KeyIndex keys;
    for (const Key key : bench.keys) keys.Add(key);
    pass.keys.emplace_back(std::move(keys));
  }
  pass.batches.push_back(std::move(batch));
  return Exchanged(group, bench, asked, /*counts_clicks=*/true, std::move(pass));
}

// The same for a batch whose keys the device collects.
data::HostBatch ExchangedOnDevice(group::ProcessGroup& group, const ModelBench& bench,
                                  const data::HostBatch& batch) {
  data::SampleBlock block;
  block.size = batch.size;
  block.label = batch.label;
  block.dense = batch.dense;
  for (const data::HostSparseBatch& sparse : batch.sparse) {
    data::SparseColumn& column = block.sparse.emplace_back();
    column.offsets = sparse.offsets;
    for (const Row row : sparse.rows) column.keys.push_back(bench.keys[row]);
  }
  auto keys = CollectSharedKeysOn(TestDevice(), batch.sparse.size());
  EXPECT_TRUE(keys.ok()) << keys.status();
  EXPECT_TRUE((*keys)->Add(block).ok());
  std::vector<std::vector<Key>> asked;
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    const absl::Span<const Key> added = (*keys)->added(i);
    asked.emplace_back(added.begin(), added.end());
  }
  data::Pass pass;
  pass.batches.push_back((*keys)->Take(std::move(block)));
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    pass.batches[0].sparse[i].slot_num = batch.sparse[i].slot_num;
  }
  EXPECT_TRUE((*keys)->Finish(&pass).ok());
  return Exchanged(group, bench, asked, /*counts_clicks=*/false, std::move(pass));
}

// A communicator that exchanges with itself and, like NCCL, orders a call only after the earlier
// work of the call's stream.
class QueuedSelf : public Communicator {
 public:
  QueuedSelf() : Communicator(0, 1) {
    EXPECT_TRUE(ended_.Grow(kCalls, TestDevice(), "test").ok());
    EXPECT_TRUE(seen_.Grow(kCalls * kCalls, TestDevice(), "test").ok());
  }
  absl::Status AllReduce(void*, size_t, ElementType, Stream& stream) override {
    return Call(stream, [] {});
  }
  absl::Status AllToAll(const void* send, absl::Span<const size_t> bytes, void* receive,
                        absl::Span<const size_t> receive_bytes, Stream& stream) override {
    EXPECT_EQ(bytes, receive_bytes);
    return Call(stream, [&] { CopyOnDevice(send, receive, bytes[0], stream); });
  }
  absl::Status Broadcast(void*, size_t, int, Stream& stream) override {
    return Call(stream, [] {});
  }
  absl::Status Barrier(Stream& stream) override { return stream.Wait(); }
  absl::Status Wait(Stream& stream) override {
    ++whole_waits_;
    return stream.Wait();
  }
  absl::Status Wait(Event& event, Stream&) override {
    ++waits_;
    return event.Wait();
  }
  void Abort(const absl::Status&) override {}

  size_t calls() const { return calls_; }
  size_t waits() const { return waits_; }              // waits for one step
  size_t whole_waits() const { return whole_waits_; }  // waits for all enqueued work
  // Expects that every call began after all earlier calls had ended, on whatever stream.
  void ExpectInOrder() const {
    ASSERT_LE(calls_, kCalls);
    const std::vector<float> seen = Here(seen_.data(), kCalls * kCalls);
    for (size_t call = 0; call < calls_; ++call) {
      for (size_t before = 0; before < call; ++before) {
        ASSERT_EQ(seen[call * kCalls + before], 1) << call << " did not wait for " << before;
      }
    }
  }

 private:
  static constexpr size_t kCalls = 128;

  absl::Status Call(Stream& stream, const std::function<void()>& work) {
    const size_t call = std::min(calls_++, kCalls - 1);
    CopyOnDevice(ended_.data(), seen_.data() + call * kCalls, kCalls * sizeof(float), stream);
    work();
    op::Fill(1, ended_.data() + call, 1, stream);
    return stream.status();
  }

  size_t calls_ = 0, waits_ = 0, whole_waits_ = 0;
  DeviceFloats ended_, seen_;  // by call: 1 if it has ended; the copy of ended_ when it began
};

// Trains all batches with two steps in flight.
std::vector<StepResult> TrainAll(ModelBench& bench, const std::vector<data::HostBatch>& batches) {
  std::vector<StepResult> results;
  const auto finish = [&] {
    const absl::StatusOr<StepResult> result = bench.model->Finish();
    EXPECT_TRUE(result.ok()) << result.status();
    results.push_back(result.ok() ? *result : StepResult());
  };
  for (size_t i = 0; i < batches.size(); ++i) {
    std::vector<const data::HostBatch*> next;
    for (size_t k = i + 1; k < std::min(i + 3, batches.size()); ++k) next.push_back(&batches[k]);
    const absl::Status launched = bench.model->Launch(batches[i], bench.pointers, i + 1, 1.0, next);
    EXPECT_TRUE(launched.ok()) << launched;
    if (i > 0) finish();
  }
  finish();
  return results;
}

void ExpectSameModel(const ModelBench& found, const ModelBench& expected) {
  for (int i = 0; i < expected.model->schema().dense_tables_size(); ++i) {
    EXPECT_EQ(found.Dense(static_cast<size_t>(i)), expected.Dense(static_cast<size_t>(i)));
  }
  for (size_t i = 0; i < expected.tables.size(); ++i) {
    EXPECT_EQ(found.Read(i).values, expected.Read(i).values) << i;
    EXPECT_EQ(found.Read(i).has_embedx, expected.Read(i).has_embedx) << i;
  }
}

void SetPeers(ModelBench& bench, Communicator& peers) {
  auto model = Model::Create(bench.config, TestDevice(), &peers);
  ASSERT_TRUE(model.ok()) << model.status();
  bench.model = *std::move(model);
}

// Trains `batches`, which contain the exchanged rows, with both communicators, and expects the
// results of the model `alone`.
void ExpectSameBits(const ModelBench& alone, const std::vector<StepResult>& expected,
                    const std::vector<float>& predictions,
                    const std::vector<data::HostBatch>& batches, const data::HostBatch& last,
                    const std::string& text, const std::vector<std::string>& flags, bool captured) {
  OneWorker one;
  QueuedSelf queued;
  for (Communicator* peers : {one.steps.get(), static_cast<Communicator*>(&queued)}) {
    ModelBench exchanging(text, flags, kSharedRows);
    ASSERT_NO_FATAL_FAILURE(SetPeers(exchanging, *peers));
    const std::vector<StepResult> results = TrainAll(exchanging, batches);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].loss, expected[i].loss) << i;
      EXPECT_EQ(results[i].grad_norm, expected[i].grad_norm) << i;
    }
    ExpectSameModel(exchanging, alone);
    EXPECT_EQ(exchanging.Predict(last), predictions);
    // The first step is not captured, because libraries load their kernels in it.
    const uint64_t parts = exchanging.model->graphs_launched() / (batches.size() - 1);
    const bool on_gpu = TestDevice().kind() == DeviceKind::kCuda;
    EXPECT_GE(parts, on_gpu && captured ? 3u : 0u);
    EXPECT_LE(parts, on_gpu && captured ? 5u : 0u);
  }
  EXPECT_EQ(queued.waits(), batches.size());
  EXPECT_GE(queued.calls(), 4 * batches.size());
  queued.ExpectInOrder();
}

// Expects that a single worker and a worker that exchanges with itself train the same bits: with
// and without CUDA graphs, with keys collected by the host and, if `device_keys`, by a GPU.
void ExpectSameBits(const std::string& text, const std::vector<std::string>& overrides,
                    bool device_keys = true) {
  OneWorker one;
  ModelBench alone(text, overrides, kSharedRows);
  std::vector<data::HostBatch> plain;
  std::vector<StepResult> expected;
  for (uint64_t step = 1; step <= 5; ++step) {
    plain.push_back(alone.batch(16 - step, static_cast<uint32_t>(step)));
    expected.push_back(alone.Train(plain.back(), step));
  }
  const data::HostBatch last = alone.batch(16, 77);
  const std::vector<float> predictions = alone.Predict(last);
  const bool on_gpu = TestDevice().kind() == DeviceKind::kCuda;
  for (const bool on_device : {false, true}) {
    if (on_device && !(device_keys && on_gpu)) continue;
    const auto exchanged = [&](const data::HostBatch& batch) {
      return on_device ? ExchangedOnDevice(*one.group, alone, batch)
                       : Exchanged(*one.group, alone, batch);
    };
    std::vector<data::HostBatch> batches;
    for (const data::HostBatch& batch : plain) batches.push_back(exchanged(batch));
    for (const bool captured : {true, false}) {
      std::vector<std::string> flags = overrides;
      flags.push_back(absl::StrCat("solver.cuda_graph=", captured ? "true" : "false"));
      ExpectSameBits(alone, expected, predictions, batches, exchanged(last), text, flags, captured);
    }
  }
}

TEST(SeveralWorkers, AWorkerThatExchangesWithItselfTrainsTheSameBits) {
  for (const std::string& text : {DnnText(), DeepFmText(), TangledText(), DlrmText(), DcnText()}) {
    ExpectSameBits(text, {});
  }
}

// An allocation waits for the steps in flight, which never end if a peer has died.
TEST(SeveralWorkers, TheCommunicatorWaitsBeforeAStepThatAllocates) {
  OneWorker one;
  const bool on_gpu = TestDevice().kind() == DeviceKind::kCuda;
  for (const auto& [last, on_device] :
       std::vector<std::pair<size_t, bool>>{{1, false}, {16, false}, {1, true}, {16, true}}) {
    if (on_device && !on_gpu) continue;
    QueuedSelf queued;
    ModelBench bench(DlrmText(), {}, kSharedRows);
    ASSERT_NO_FATAL_FAILURE(SetPeers(bench, queued));
    std::vector<data::HostBatch> batches;
    for (const size_t size : {size_t{1}, size_t{1}, last}) {
      const data::HostBatch batch = bench.batch(size, 5);
      batches.push_back(on_device ? ExchangedOnDevice(*one.group, bench, batch)
                                  : Exchanged(*one.group, bench, batch));
    }
    TrainAll(bench, batches);
    if (last == 1) {
      EXPECT_EQ(queued.whole_waits(), 0u);
    } else {
      EXPECT_GE(queued.whole_waits(), 1u);
    }
  }
}

TEST(SeveralWorkers, ClipsRegularizesAndScalesLikeASingleWorker) {
  ExpectSameBits(TangledText(), {"cistern.clip_norm=0.05", "cistern.embedding_l2=0.01"});
  ExpectSameBits(DnnText(), {"solver.mixed_precision=1024"});
}

TEST(SeveralWorkers, CtrRowsCountShowsAndClicksOfAllBatches) {
  ExpectSameBits(DnnText(),
                 {R"(cistern.embeddings.emb={"accessor":"ctr","embedx_threshold":2,)"
                  R"("optimizer":{"type":"AdaGradShared"}})"},
                 /*device_keys=*/false);
}

TEST(SeveralWorkers, RowsCountTheOccurrencesOfAllBatches) {
  ExpectSameBits(DnnText(), {"cistern.embeddings.emb.admit_after=3"}, /*device_keys=*/false);
  ExpectSameBits(DnnText(),
                 {"cistern.embeddings.emb.max_rows=100", "cistern.embeddings.emb.evict_by=count"},
                 /*device_keys=*/false);
}

}  // namespace
}  // namespace cistern::model
