#include "worker/export/committed_model.h"

#include "common/value/step_clock.h"

namespace cistern {
namespace {

class FleetModel : public CommittedModel {
 public:
  FleetModel(ParameterClient& client, std::string name)
      : client_(client), name_(std::move(name)), version_(VersionOn(client)) {}

  const std::string& name() const override { return name_; }
  CommittedVersion version() const override { return version_; }
  const v1::Schema& schema() const override { return client_.schema(); }
  uint32_t shard_num() const override { return client_.shard_map().shard_num(); }

  absl::Status Scan(TableId table, const Visit& visit) override {
    return client_.Scan(table, visit);
  }

  absl::Status ScanCached(TableId table, const Visit& visit) override {
    return client_.ScanCached(table, visit);
  }

  absl::StatusOr<std::vector<uint64_t>> CountRows(TableId table, uint32_t server_num) override {
    const size_t servers = client_.servers().size();
    if (servers != server_num) return CommittedModel::CountRows(table, server_num);
    std::vector<v1::StatsReply> replies(servers);
    CISTERN_RETURN_IF_ERROR(client_.ForEachServer([&](size_t rank, ControlPlane& server) {
      v1::StatsRequest request;
      *request.mutable_identity() = client_.identity();
      return server.Stats(request, &replies[rank]);
    }));
    std::vector<uint64_t> rows(servers);
    for (size_t rank = 0; rank < servers; ++rank) {
      for (const v1::TableStats& stats : replies[rank].tables()) {
        if (stats.name() == schema().tables(static_cast<int>(table)).name()) {
          rows[rank] = stats.rows();
        }
      }
    }
    return rows;
  }

  absl::Status Pull(TableId table, absl::Span<const Key> keys, float* values,
                    uint8_t* has_embedx) override {
    CISTERN_RETURN_IF_ERROR(client_.Pull(table, keys, /*absent_is_zero=*/true, values, has_embedx));
    const ValueLayout& layout = client_.layout(table);
    const RowReader reader(layout, client_.clock(), table);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (has_embedx[i] == kAbsent) return Changed();
      reader.BringUp(values + i * layout.full_floats());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<float>> PullDense(TableId table) override {
    const v1::DenseTableSpec& spec = schema().dense_tables(static_cast<int>(table));
    std::vector<float> values(spec.rows() * static_cast<size_t>(spec.columns_size()));
    CISTERN_RETURN_IF_ERROR(AddContext(client_.PullDense(table, values.data()),
                                       absl::StrCat("table '", spec.name(), "' of the servers")));
    return values;
  }

  absl::Status Recheck() override {
    std::vector<v1::HelloReply> replies(client_.servers().size());
    CISTERN_RETURN_IF_ERROR(client_.ForEachServer(
        [&](size_t rank, ControlPlane& server) { return server.Hello({}, &replies[rank]); }));
    for (const v1::HelloReply& reply : replies) {
      if (reply.committed_pass() != version_.pass) return Changed();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Changed() const {
    return WithOptions(
        absl::AbortedError(absl::StrCat(
            name_,
            ": a training run committed during the export, so that what was read is not one "
            "state of the model; do not use it. Export from its files instead (a data_dir, on a "
            "machine that can read it), or from a saved model")),
        {"state"});
  }

  // Servers that keep commits report the newest one to any client. It is the state of the servers
  // unless the pass is in memory only.
  static CommittedVersion VersionOn(ParameterClient& client) {
    CommittedVersion version = {.pass = client.committed_pass()};
    v1::GetManifestRequest request;
    *request.mutable_identity() = client.identity();
    v1::GetManifestReply reply;
    const absl::Status got = client.servers()[0].control->GetManifest(request, &reply);
    if (!got.ok() || reply.manifest().pass() != version.pass) return version;
    version.commit = reply.manifest().commit();
    version.manifest_xxh3 = version.commit > 0 ? reply.self_xxh3() : 0;
    return version;
  }

  ParameterClient& client_;
  const std::string name_;
  const CommittedVersion version_;
};

}  // namespace

absl::StatusOr<std::vector<uint64_t>> CommittedModel::CountRows(TableId table,
                                                                uint32_t server_num) {
  std::vector<uint64_t> rows(server_num);
  CISTERN_RETURN_IF_ERROR(Scan(table, [&](uint32_t shard, Key, const float*, bool) {
    ++rows[shard % server_num];
    return absl::OkStatus();
  }));
  return rows;
}

absl::Status CommittedModel::ScanRemoved(TableId, const std::function<absl::Status(Key)>&) {
  return absl::OkStatus();
}

absl::Status CommittedModel::ScanCached(TableId, const Visit&) {
  return absl::FailedPreconditionError(
      absl::StrCat(name(), ": files have no memory cache, only servers do"));
}

std::unique_ptr<CommittedModel> CommittedModelOf(ParameterClient& client, const std::string& name) {
  return std::make_unique<FleetModel>(client, name);
}

int FindDenseTable(const v1::Schema& schema, const std::string& name) {
  for (int i = 0; i < schema.dense_tables_size(); ++i) {
    if (schema.dense_tables(i).name() == name) return i;
  }
  return -1;
}

}  // namespace cistern
