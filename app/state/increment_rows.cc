#include "app/state/increment_rows.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "app/state/saved_place.h"
#include "common/saved_model/increment.h"
#include "common/value/schema.h"
#include "server/table/value_block.h"

namespace cistern::app {
namespace {

// What increments change in one sparse table.
class Overlay {
 public:
  Overlay(ValueLayout layout, uint32_t shard_num)
      : layout_(std::move(layout)), by_shard_(shard_num) {}

  void Put(Key key, const float* value, bool has_embedx) {
    const auto [place, is_new] = places_.try_emplace(key, rows_.size());
    if (is_new) by_shard_[key % by_shard_.size()].push_back(key);
    place->second = rows_.size();
    rows_.Add(key, value, layout_.full_floats(), has_embedx);
  }
  void Remove(Key key) {
    const auto [place, is_new] = places_.try_emplace(key, kGone);
    if (is_new) by_shard_[key % by_shard_.size()].push_back(key);
    place->second = kGone;
  }

  bool Covers(Key key) const { return places_.contains(key); }
  absl::Status Scan(ShardIndex shard, const RowSource::Visit& visit) const {
    for (const Key key : by_shard_.at(shard)) {
      const size_t place = places_.at(key);
      if (place == kGone) continue;
      const float* const value = &rows_.values[place * layout_.full_floats()];
      CISTERN_RETURN_IF_ERROR(visit(key, value, rows_.has_embedx[place] != 0));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kGone = SIZE_MAX;

  const ValueLayout layout_;
  server::RowBatch rows_;  // a later row of a key replaces an earlier one, which stays unused
  absl::flat_hash_map<Key, size_t> places_;
  std::vector<std::vector<Key>> by_shard_;
};

class IncrementedRows : public RowSource {
 public:
  IncrementedRows(std::unique_ptr<RowSource> base, v1::IncrementState state, std::string name)
      : base_(std::move(base)), state_(std::move(state)), name_(std::move(name)) {}

  absl::Status Add(FileSystem& files, const std::string& folder, const v1::Increment& increment) {
    const v1::Schema& tables = schema();
    if (overlays_.empty()) {
      for (const v1::TableSpec& table : tables.tables()) {
        CISTERN_ASSIGN_OR_RETURN(ValueLayout layout, ValueLayout::CreateStored(table));
        overlays_.emplace_back(std::move(layout), base_->shard_num());
      }
      dense_.resize(static_cast<size_t>(tables.dense_tables_size()));
    }
    for (TableId id = 0; id < overlays_.size(); ++id) {
      Overlay& overlay = overlays_[id];
      CISTERN_RETURN_IF_ERROR(ReadIncrementRows(files, folder, increment, id,
                                                [&](Key key, const float* value, bool has_embedx) {
                                                  overlay.Put(key, value, has_embedx);
                                                  return absl::OkStatus();
                                                }));
      CISTERN_RETURN_IF_ERROR(ReadIncrementRemoved(files, folder, increment, id, [&](Key key) {
        overlay.Remove(key);
        return absl::OkStatus();
      }));
    }
    for (TableId id = 0; id < dense_.size(); ++id) {
      CISTERN_ASSIGN_OR_RETURN(dense_[id], ReadIncrementDense(files, folder, increment, id));
    }
    return absl::OkStatus();
  }

  const v1::Schema& schema() const override { return base_->schema(); }
  uint32_t shard_num() const override { return base_->shard_num(); }
  CommittedVersion version() const override {
    return {state_.commit(), state_.manifest_xxh3(), state_.pass()};
  }
  std::string name() const override { return name_; }
  std::optional<v1::IncrementState> state() const override { return state_; }

  absl::Status ScanShard(TableId table, ShardIndex shard, const Visit& visit) const override {
    const Overlay& overlay = overlays_.at(table);
    const auto keep = [&](Key key, const float* value, bool has_embedx) {
      return overlay.Covers(key) ? absl::OkStatus() : visit(key, value, has_embedx);
    };
    CISTERN_RETURN_IF_ERROR(base_->ScanShard(table, shard, keep));
    return overlay.Scan(shard, visit);
  }

  absl::StatusOr<std::vector<float>> ReadDense(TableId table) const override {
    return dense_.at(table);
  }

 private:
  const std::unique_ptr<RowSource> base_;
  const v1::IncrementState state_;
  const std::string name_;
  std::vector<Overlay> overlays_;          // by table
  std::vector<std::vector<float>> dense_;  // by table; empty: never written
};

absl::Status DoesNotContinue(const std::string& after, const v1::IncrementState& ends,
                             const std::string& folder, const v1::IncrementState& begins) {
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     folder, " begins at ", StateText(begins), " and does not continue ", after,
                     ", which ends at ", StateText(ends), " with other rows")),
                 "name all increments, the oldest first");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowSource>> OpenExact(FileSystem& files, const std::string& place) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SavedRows> rows,
                           SavedRows::Open(files, ParseRowsPlace(place)));
  if (rows->clock().step() != 0 || rows->clock().rates_size() != 0) {
    return WithFix(absl::UnimplementedError(
                       absl::StrCat(rows->name(),
                                    ": an update rule of its tables defers updates, so that every "
                                    "step changes every row")),
                   "save the whole model instead");
  }
  if (rows->state().has_value()) return rows;
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat(rows->name(), " does not record digests of all its rows")),
                 "name a whole, exact save of this version, or a commit");
}

absl::Status CheckIsNew(FileSystem& files, const std::string& out) {
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(out));
  if (!exists) return absl::OkStatus();
  return WithOptions(absl::AlreadyExistsError(absl::StrCat(out, " already exists")), {"out"});
}

nlohmann::ordered_json JsonOf(const v1::IncrementState& state) {
  nlohmann::ordered_json json = {{"commit", state.commit()}, {"pass", state.pass()}};
  json["tables"] = nlohmann::ordered_json::array();
  for (const auto* tables : {&state.tables(), &state.dense_tables()}) {
    for (const v1::TableState& table : *tables) {
      json["tables"].push_back(
          {{"name", table.name()}, {"rows", table.rows()}, {"digest", DigestText(table.digest())}});
    }
  }
  return json;
}

absl::StatusOr<IncrementChain> ReadChain(FileSystem& files,
                                         const std::vector<std::string>& folders) {
  IncrementChain chain;
  for (const std::string& folder : folders) {
    absl::StatusOr<v1::Increment> increment = ReadIncrement(files, folder);
    if (absl::IsNotFound(increment.status())) {
      return WithFix(absl::InvalidArgumentError(increment.status().message()),
                     "name the folders that saves of changes have written");
    }
    if (!increment.ok()) return WithKind(increment.status(), ErrorKind::kBadCheckpoint);
    if (!chain.empty()) {
      const v1::Increment& last = chain.increments.back();
      if (!SameRows(last.to(), increment->from())) {
        return DoesNotContinue(chain.folders.back(), last.to(), folder, increment->from());
      }
      const std::string difference = SchemaDifference(last.schema(), increment->schema());
      if (!difference.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(folder, " has other tables than ",
                                                       chain.folders.back(), ": ", difference));
      }
    }
    chain.folders.push_back(folder);
    chain.increments.push_back(*std::move(increment));
  }
  return chain;
}

absl::StatusOr<size_t> FirstMissing(const IncrementChain& chain, const v1::IncrementState& state,
                                    const std::string& name) {
  const size_t n = chain.increments.size();
  if (n == 0 || SameRows(chain.increments[n - 1].to(), state)) return n;
  // An increment may change nothing: the last that begins here is the first to apply.
  for (size_t i = n; i-- > 0;) {
    if (SameRows(chain.increments[i].from(), state)) return i;
  }
  return WithFix(
      absl::FailedPreconditionError(absl::StrCat(chain.folders[0], " changes the rows of ",
                                                 StateText(chain.increments[0].from()), ", and ",
                                                 name, " holds others (", StateText(state), ")")),
      "begin with the saved model that the first increment was made from, and name the "
      "increments in order without a gap");
}

absl::StatusOr<std::unique_ptr<RowSource>> WithIncrements(FileSystem& files,
                                                          std::unique_ptr<RowSource> base,
                                                          const IncrementChain& chain,
                                                          size_t first) {
  if (first == chain.increments.size()) return base;
  const std::string difference = SchemaDifference(base->schema(), chain.increments[0].schema());
  if (!difference.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(base->name(), " has other tables than ", chain.folders[0], ": ", difference));
  }
  const std::string name =
      absl::StrCat(base->name(), " with increments up to ", chain.folders.back());
  auto rows =
      std::make_unique<IncrementedRows>(std::move(base), chain.increments.back().to(), name);
  for (size_t i = first; i < chain.increments.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(WithKind(rows->Add(files, chain.folders[i], chain.increments[i]),
                                     ErrorKind::kBadCheckpoint));
  }
  return rows;
}

}  // namespace cistern::app
