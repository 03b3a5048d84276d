// Tables with bounds: which rows commits remove, against a model that keeps every row in a map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "common/base/hash.h"
#include "test/server/commit/durable_fixture.h"

namespace cistern::server {
namespace {

constexpr uint32_t kShards = 8;

struct BoundedRow {
  std::vector<float> value;  // full_floats, with the pass that pushed it last
  bool has_embedx = true;
  PassId last_pass = 0;
  bool operator==(const BoundedRow&) const = default;
};
using BoundedRows = std::map<Key, BoundedRow>;

// A bounded table in words of its specification.
class BoundedModel {
 public:
  explicit BoundedModel(const v1::TableSpec& spec)
      : spec_(spec), layout_(ValueLayout::Create(spec).value()) {}

  const BoundedRows& rows() const { return rows_; }
  // The rows with which pass `pass() + 2` begins, as far as the next pass does not have them.
  BoundedRows RowsAfterNext() const {
    BoundedRows rows = rows_;
    for (const Key key : due_) rows.erase(key);
    return rows;
  }
  PassId pass() const { return pass_; }
  uint64_t removed() const { return removed_; }

  // clock: the day that the writer's clock shows.
  void Commit(BoundedRows pushed, uint32_t clock) {
    ++pass_;
    day_of_.push_back(std::max(clock, day_of_.empty() ? 0 : day_of_.back()));
    for (const Key key : due_) {
      if (pushed.count(key) == 0) removed_ += rows_.erase(key);
    }
    for (auto& [key, row] : pushed) {
      row.last_pass = pass_;
      row.value[layout_.last_pass_index()] = static_cast<float>(pass_);
      rows_[key] = row;
    }
    due_.clear();
    for (uint32_t shard = 0; shard < kShards; ++shard) FindDue(shard);
  }

 private:
  double MeasureOf(const BoundedRow& row) const {
    const auto square = [&](const char* name) {
      const ValueField* field = layout_.FindField(name);
      double sum = 0;
      for (uint32_t i = 0; field != nullptr && i < field->count; ++i) {
        sum += std::pow(static_cast<double>(row.value[field->first + i]), 2);
      }
      return sum;
    };
    switch (spec_.bounds().evict_by()) {
      case v1::TableBounds::SHOW:
        return LoadDouble(&row.value[layout_.FindField("show")->first]);
      case v1::TableBounds::COUNT:
        return static_cast<double>(row.value[layout_.FindField("count")->first]);
      case v1::TableBounds::NORM:
        return square("w") + square("embed_w") + (row.has_embedx ? square("embedx_w") : 0);
      default:
        return static_cast<double>(row.last_pass);
    }
  }

  void FindDue(uint32_t shard) {
    std::vector<std::tuple<double, PassId, uint64_t, Key>> others;
    for (const auto& [key, row] : rows_) {
      if (key % kShards != shard) continue;
      const uint64_t expire = spec_.bounds().expire_passes(), days = spec_.bounds().expire_days();
      if ((expire > 0 && row.last_pass + expire <= pass_ + 1) ||
          (days > 0 && day_of_[row.last_pass - 1] + days <= day_of_.back())) {
        due_.insert(key);
      } else {
        others.push_back({MeasureOf(row), row.last_pass, MixKey(key), key});
      }
    }
    const uint64_t max_rows = spec_.bounds().max_rows();
    if (max_rows == 0) return;
    const uint64_t share = max_rows / kShards + (shard < max_rows % kShards ? 1 : 0);
    std::sort(others.begin(), others.end());
    for (size_t i = 0; i + share < others.size(); ++i) due_.insert(std::get<3>(others[i]));
  }

  const v1::TableSpec spec_;
  const ValueLayout layout_;
  BoundedRows rows_;
  std::set<Key> due_;
  PassId pass_ = 0;
  std::vector<uint32_t> day_of_;  // the passes, from 1 on
  uint64_t removed_ = 0;
};

// Every other table keeps its rows a day longer.
v1::Schema BoundedSchema(uint64_t max_rows, uint32_t expire_passes, uint32_t expire_days) {
  v1::Schema schema;
  for (const auto order : {v1::TableBounds::AGE, v1::TableBounds::NORM, v1::TableBounds::SHOW,
                           v1::TableBounds::NORM, v1::TableBounds::COUNT, v1::TableBounds::NORM}) {
    const int t = schema.tables_size();
    v1::TableSpec spec = TestSchema().tables(t == 2 || t == 3 ? kCtr : kDeep);
    // Servers store what workers admit: some rows without weights.
    if (t == 5) spec.mutable_bounds()->set_admit_after(3);
    spec.set_name(absl::StrCat("table", schema.tables_size()));
    spec.mutable_bounds()->set_evict_by(order);
    if (max_rows > 0) spec.mutable_bounds()->set_max_rows(max_rows);
    if (expire_passes > 0) spec.mutable_bounds()->set_expire_passes(expire_passes);
    if (expire_days > 0) {
      spec.mutable_bounds()->set_expire_days(expire_days + static_cast<uint32_t>(t % 2));
    }
    *schema.add_tables() = spec;
  }
  v1::TableSpec free = TestSchema().tables(kDeep);
  free.set_name("free");
  *schema.add_tables() = free;
  return schema;
}

class BoundedCommit : public DurableCommit {
 protected:
  void Start(const v1::Schema& schema, uint32_t server_num) {
    schema_ = schema;
    if (models_.empty()) {
      for (const auto& spec : schema.tables()) {
        models_.push_back(std::make_unique<BoundedModel>(spec));
      }
      models_.pop_back();  // "free" has no bounds
    }
    client_.reset();
    fleet_.reset();
    fleet_ = std::make_unique<RestartableFleet>(server_num, Base());
    Connect();
  }
  void Connect() {
    ClientOptions options;
    options.today = [this] {
      ++clock_reads_;
      return clock_;
    };
    client_ = Connected(fleet_->Links(), options);
    ASSERT_EQ(client_->CreateTables(schema_), absl::OkStatus());
    ASSERT_EQ(client_->ClaimTerm(), absl::OkStatus());
    ASSERT_EQ(client_->committed_pass(), models_[0]->pass());
  }

  // Keys of pass `pass`: a window that moves, so that rows go and come back.
  static std::set<Key> KeysOf(TableId table, PassId pass) {
    std::mt19937_64 random(pass * 31 + table);
    std::set<Key> keys;
    for (int i = 0; i < 60; ++i) keys.insert(1 + pass % 7 * 40 + random() % 150);
    return keys;
  }
  BoundedRows RowsOf(TableId table, PassId pass) const {
    std::mt19937_64 random(pass * 17 + table);
    const ValueLayout& layout = client_->layout(table);
    BoundedRows rows;
    for (const Key key : KeysOf(table, pass)) {
      BoundedRow& row = rows[key];
      row.has_embedx = !layout.embedx_is_optional() || (key + pass) % 2 == 0;
      row.value.resize(layout.full_floats());
      for (uint32_t c = 0; c < layout.floats(row.has_embedx); ++c) {
        row.value[c] = static_cast<float>(random() % 50) / 7.0f;
      }
      if (const ValueField* show = layout.FindField("show")) {
        StoreDouble(&row.value[show->first], static_cast<double>(random() % 20));
      }
    }
    return rows;
  }

  absl::Status PushAndCommit(PassId pass, bool durable) {
    CISTERN_RETURN_IF_ERROR(client_->BeginPass());
    for (TableId t = 0; t < static_cast<TableId>(schema_.tables_size()); ++t) {
      std::vector<Key> keys;
      std::vector<float> values;
      std::vector<uint8_t> has_embedx;
      for (const auto& [key, row] : RowsOf(t, pass)) {
        keys.push_back(key);
        values.insert(values.end(), row.value.begin(), row.value.end());
        has_embedx.push_back(row.has_embedx ? 1 : 0);
      }
      CISTERN_RETURN_IF_ERROR(client_->Push(t, keys, values.data(), has_embedx.data()));
    }
    ParameterClient::CommitOptions commit;
    commit.durable = durable;
    CISTERN_RETURN_IF_ERROR(client_->CommitPass(commit));
    for (TableId t = 0; t < models_.size(); ++t) models_[t]->Commit(RowsOf(t, pass), clock_);
    return absl::OkStatus();
  }

  // What the pull of keys 1 .. 500, less those of `without`, for `pass` must find.
  void ExpectPulled(TableId table, PassId pass, const std::set<Key>& without,
                    const BoundedRows& expected) {
    const ValueLayout& layout = client_->layout(table);
    const size_t stride = layout.full_floats();
    std::vector<Key> keys;
    for (Key key = 1; key <= 500; ++key) {
      if (without.count(key) == 0) keys.push_back(key);
    }
    for (const bool absent_is_zero : {false, true}) {
      std::vector<float> values(keys.size() * stride), first(stride);
      std::vector<uint8_t> has_embedx(keys.size());
      ASSERT_EQ(
          client_->Pull(table, keys, absent_is_zero, values.data(), has_embedx.data(), {}, pass),
          absl::OkStatus());
      for (size_t i = 0; i < keys.size(); ++i) {
        const std::vector<float> value(
            values.begin() + static_cast<std::ptrdiff_t>(i * stride),
            values.begin() + static_cast<std::ptrdiff_t>((i + 1) * stride));
        const auto row = expected.find(keys[i]);
        if (row != expected.end()) {
          ASSERT_EQ(value, row->second.value) << keys[i];
        } else if (absent_is_zero) {
          ASSERT_EQ(has_embedx[i], kAbsent) << keys[i];
        } else {
          ASSERT_EQ(has_embedx[i], layout.Initialize(keys[i], first.data())) << keys[i];
          ASSERT_EQ(value, first) << keys[i];
        }
      }
    }
  }

  // The pulls of a worker: for the pass after the next one, of keys that the next one does not
  // have, before the next one is committed; and for the next one.
  void ExpectViews() {
    for (TableId t = 0; t < models_.size(); ++t) {
      const PassId next = models_[t]->pass() + 1;
      ExpectPulled(t, next, {}, models_[t]->rows());
      ExpectPulled(t, next + 1, KeysOf(t, next), models_[t]->RowsAfterNext());
      // Without a pass, and for passes that no worker can be preparing.
      for (const PassId pass : {PassId{0}, next + 2, ~PassId{0}}) {
        ExpectPulled(t, pass, {}, models_[t]->rows());
      }
    }
  }

  void ExpectRows() {
    for (TableId t = 0; t < models_.size(); ++t) {
      BoundedRows found;
      const uint32_t cell = client_->layout(t).last_pass_index();
      ASSERT_EQ(client_->Scan(t,
                              [&](uint32_t, Key key, const float* value, bool has_embedx) {
                                const std::vector<float> cells(
                                    value, value + client_->layout(t).full_floats());
                                found[key] = {cells, has_embedx, static_cast<PassId>(value[cell])};
                                return absl::OkStatus();
                              }),
                absl::OkStatus());
      ASSERT_EQ(found, models_[t]->rows()) << "table " << t << ", pass " << models_[t]->pass();
    }
  }

  // Commits passes, with pulls between them, restarts, and changes of the number of servers. The
  // clock jumps forward and back.
  void FollowsItsModel(uint64_t max_rows, uint32_t expire_passes, uint32_t expire_days = 0) {
    std::mt19937_64 random(max_rows + expire_passes);
    ASSERT_NO_FATAL_FAILURE(Start(BoundedSchema(max_rows, expire_passes, expire_days), 2));
    for (PassId pass = 1; pass <= 24; ++pass) {
      if (expire_days > 0 && random() % 2 == 0) clock_ += 1 + random() % 2;
      if (expire_days > 0 && random() % 6 == 0) clock_ -= random() % 8;
      const bool loads = pass % 8 == 1;
      const bool durable = loads || random() % 4 != 0;
      ASSERT_EQ(PushAndCommit(pass, durable), absl::OkStatus());
      ASSERT_NO_FATAL_FAILURE(ExpectRows());
      ASSERT_NO_FATAL_FAILURE(ExpectViews());
      if (!loads && (!durable || random() % 3 != 0)) continue;
      const uint64_t what = random() % 4;
      if (loads) {
        ASSERT_NO_FATAL_FAILURE(SaveAndLoad());
      } else if (what == 0) {
        ASSERT_NO_FATAL_FAILURE(Restart());
      } else if (what == 1) {
        ASSERT_NO_FATAL_FAILURE(Restart(random()));
      } else {
        ASSERT_NO_FATAL_FAILURE(Start(schema_, 1 + static_cast<uint32_t>(random() % 4)));
      }
      ASSERT_NO_FATAL_FAILURE(ExpectRows());
      ASSERT_NO_FATAL_FAILURE(ExpectViews());
    }
    for (const auto& model : models_) EXPECT_GT(model->removed(), 100u);
    EXPECT_EQ(clock_reads_, expire_days > 0 ? models_[0]->pass() + loads_ : 0u);
  }

  // Replaces the rows by those of a saved model, days later: the same, and the same days of passes.
  void SaveAndLoad() {
    clock_ += 3;
    const std::string name = absl::StrCat("saved-", ++loads_);
    for (size_t rank = 0; rank < fleet_->size(); ++rank) {
      v1::SaveRequest request;
      *request.mutable_identity() = client_->identity();
      request.set_name(name);
      v1::SaveReply reply;
      ASSERT_EQ(fleet_->address(rank).Save(request, &reply), absl::OkStatus());
    }
    ASSERT_EQ(client_->Clear(0), absl::OkStatus());
    v1::LoadRequest request;
    request.set_name(name);
    v1::LoadReply reply;
    ASSERT_EQ(client_->Load(request, &reply), absl::OkStatus());
  }

  // Restarts every server, or a single one: it must agree with those that go on.
  void Restart(std::optional<size_t> one = std::nullopt) {
    for (size_t rank = 0; rank < fleet_->size(); ++rank) {
      if (one.has_value() && *one % fleet_->size() != rank) continue;
      ASSERT_EQ(fleet_->Restart(rank), absl::OkStatus());
    }
    Connect();
  }

  v1::Schema schema_;
  std::unique_ptr<RestartableFleet> fleet_;
  std::unique_ptr<ParameterClient> client_;
  std::vector<std::unique_ptr<BoundedModel>> models_;
  uint32_t clock_ = 20000;  // the day
  uint64_t clock_reads_ = 0, loads_ = 0;
};

TEST_P(BoundedCommit, KeepsTheRowsAboveOthersOfTheirShard) {
  FollowsItsModel(100, 0);
}

TEST_P(BoundedCommit, KeepsOneRowAShard) {
  FollowsItsModel(kShards, 0);
}

TEST_P(BoundedCommit, KeepsTheRowsOfTheLastPass) {
  FollowsItsModel(0, 1);
}

TEST_P(BoundedCommit, KeepsTheRowsOfTheLastPasses) {
  FollowsItsModel(0, 3);
}

TEST_P(BoundedCommit, KeepsWhatBothBoundsKeep) {
  FollowsItsModel(61, 4);
}

TEST_P(BoundedCommit, KeepsTheRowsOfTheLastDays) {
  FollowsItsModel(0, 0, 2);
}

TEST_P(BoundedCommit, KeepsWhatAllBoundsKeep) {
  FollowsItsModel(90, 5, 2);
}

// The pass whose commit was lost is trained again when the clock shows an earlier day.
TEST_P(BoundedCommit, ALostPassCountsAsOfTheDayOnWhichItIsTrainedAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(BoundedSchema(0, 0, 2), 2));
  ASSERT_EQ(PushAndCommit(1, true), absl::OkStatus());
  clock_ += 9;
  ASSERT_EQ(client_->BeginPass(), absl::OkStatus());
  ParameterClient::CommitOptions in_memory;
  in_memory.durable = false;
  ASSERT_EQ(client_->CommitPass(in_memory), absl::OkStatus());
  ASSERT_NO_FATAL_FAILURE(Connect());  // the claim drops pass 2, and its day
  clock_ -= 8;
  for (PassId pass = 2; pass <= 6; ++pass) {
    ASSERT_EQ(PushAndCommit(pass, true), absl::OkStatus());
    ASSERT_NO_FATAL_FAILURE(ExpectRows());
    ASSERT_NO_FATAL_FAILURE(ExpectViews());
    EXPECT_EQ(client_->manifest().days().days().rbegin()->day(), clock_);
    ++clock_;
  }
  EXPECT_GT(models_[0]->removed(), 0u);
}

CISTERN_WITH_AND_WITHOUT_MEMORY(BoundedCommit);

}  // namespace
}  // namespace cistern::server
