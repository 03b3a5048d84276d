// Servers with a ctr table, and random training of its rows, for the tests of exports.
#pragma once

#include <random>
#include <set>

#include "common/value/accessor/ctr_accessor.h"
#include "test/worker/client/embedded_fleet.h"
#include "worker/export/committed_model.h"

namespace cistern {

// empty_table: a second table, called "empty", of which no row is trained.
inline v1::Schema CtrSchema(float delta_threshold, bool empty_table = false) {
  v1::Schema schema;
  v1::TableSpec* ctr = schema.add_tables();
  ctr->set_name("ctr");
  ctr->set_accessor(v1::TableSpec::CTR);
  ctr->set_dim(3);
  ctr->mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  ctr->mutable_rule()->set_initial_g2sum(3);
  ctr->mutable_ctr()->set_nonclk_coeff(0.1f);
  ctr->mutable_ctr()->set_click_coeff(1);
  ctr->mutable_ctr()->set_embedx_threshold(4);
  ctr->mutable_ctr()->set_delta_threshold(delta_threshold);
  if (empty_table) {
    const v1::TableSpec spec = *ctr;
    *schema.add_tables() = spec;
    schema.mutable_tables(1)->set_name("empty");
  }
  return schema;
}

// A fleet of two servers, its only writer, and a stream of random numbers.
class CtrFleet {
 public:
  static constexpr Key kKeys = 200;

  explicit CtrFleet(uint64_t seed, float delta_threshold = 1, bool empty_table = false)
      : servers_(2), random_(seed) {
    client_ = Connected(servers_.Links());
    EXPECT_EQ(client_->CreateTables(CtrSchema(delta_threshold, empty_table)), absl::OkStatus());
    EXPECT_EQ(client_->ClaimTerm(), absl::OkStatus());
  }

  ParameterClient& client() { return *client_; }
  std::unique_ptr<CommittedModel> model() { return CommittedModelOf(*client_, "servers"); }
  uint64_t Draw(uint64_t bound) { return random_() % bound; }

  // Commits a pass in which `rows` random rows were shown, and some of them clicked.
  void Train(size_t rows) {
    std::set<Key> drawn;
    while (drawn.size() < rows) drawn.insert(1 + Draw(kKeys));
    const std::vector<Key> keys(drawn.begin(), drawn.end());
    const ValueLayout& layout = client_->layout(0);
    const size_t stride = layout.full_floats();
    std::vector<float> values(keys.size() * stride);
    std::vector<uint8_t> has_embedx(keys.size());
    ASSERT_TRUE(client_->Pull(0, keys, false, values.data(), has_embedx.data()).ok());
    for (size_t i = 0; i < keys.size(); ++i)
      has_embedx[i] = Show(&values[i * stride], keys[i], has_embedx[i]);
    ASSERT_TRUE(client_->BeginPass().ok());
    ASSERT_TRUE(client_->Push(0, keys, values.data(), has_embedx.data()).ok());
    ASSERT_TRUE(client_->CommitPass().ok());
  }

 private:
  // Shows a row, changes its weights, and returns whether it has embedx now.
  bool Show(float* value, Key key, bool has_embedx) {
    const ValueLayout& layout = client_->layout(0);
    const double shows = 3 + static_cast<double>(Draw(3)), clicks = static_cast<double>(Draw(3));
    const double show = LoadDouble(value + CtrCells::kShow) + shows;
    const double click = LoadDouble(value + CtrCells::kClick) + clicks;
    StoreDouble(value + CtrCells::kShow, show);
    StoreDouble(value + CtrCells::kClick, click);
    value[CtrCells::kDeltaScore] += static_cast<float>(CtrScore(layout.ctr(), shows, clicks));
    value[CtrCells::kEmbedW] = static_cast<float>(Draw(1000)) / 500 - 1;
    if (!has_embedx && CtrScore(layout.ctr(), show, click) < 4) return false;
    if (!has_embedx) layout.InitializeEmbedx(key, value);
    for (uint32_t i = 0; i < layout.dim(); ++i) {
      value[layout.weight_index() + i] = static_cast<float>(Draw(1000)) / 500 - 1;
    }
    return true;
  }

  EmbeddedFleet servers_;
  std::unique_ptr<ParameterClient> client_;
  std::mt19937_64 random_;
};

}  // namespace cistern
