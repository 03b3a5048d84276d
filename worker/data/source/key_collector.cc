#include "worker/data/source/key_collector.h"

#include <algorithm>
#include <utility>

#include "worker/data/source/batch_builder.h"

namespace cistern::data {
namespace {

class HostKeys : public KeyCollector {
 public:
  explicit HostKeys(size_t inputs) : keys_(inputs), most_(inputs), before_(inputs), rows_(inputs) {}

  absl::Status Add(const SampleBlock& samples) override {
    for (size_t i = 0; i < keys_.size(); ++i) {
      const std::vector<Key>& keys = samples.sparse[i].keys;
      before_[i] = keys_[i].size();
      rows_[i].resize(keys.size());
      if (keys_[i].size() == 0) keys_[i].Expect(most_[i]);
      keys_[i].Add(keys, rows_[i].data());
    }
    return absl::OkStatus();
  }
  size_t size(size_t input) const override { return keys_[input].size(); }
  absl::Span<const Key> added(size_t input) const override {
    return keys_[input].keys().subspan(before_[input]);
  }
  void Drop() override {
    for (size_t i = 0; i < keys_.size(); ++i) keys_[i].Truncate(before_[i]);
  }
  HostBatch Take(SampleBlock&& samples) override {
    HostBatch batch = MakeHostBatch(std::move(samples));
    for (size_t i = 0; i < keys_.size(); ++i) batch.sparse[i].rows = std::move(rows_[i]);
    return batch;
  }
  absl::Status Finish(Pass* pass) override {
    for (size_t i = 0; i < keys_.size(); ++i) {
      most_[i] = std::max(most_[i], keys_[i].size());
      pass->keys.emplace_back(std::exchange(keys_[i], KeyIndex()));
    }
    return absl::OkStatus();
  }

  bool wants_segments() const override { return true; }

 private:
  std::vector<KeyIndex> keys_;
  std::vector<size_t> most_;  // keys of any pass so far
  std::vector<size_t> before_;
  std::vector<std::vector<Row>> rows_;
};

}  // namespace

std::unique_ptr<KeyCollector> KeyCollector::OnHost(size_t inputs) {
  return std::make_unique<HostKeys>(inputs);
}

}  // namespace cistern::data
