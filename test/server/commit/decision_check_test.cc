// False manifests: a writer with the right secret requests the decision of a manifest that differs
// from what the servers have prepared. Each is refused, and the true one is decided afterwards.
#include "server/commit/decision_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;

// Lets a test inspect and replace what a client sends to Decide.
class DecideTap : public ControlPlane {
 public:
  explicit DecideTap(ControlPlane* next) : next_(next) {}
  std::function<void(const v1::DecideRequest&)> seen;

#define CISTERN_METHOD(name, request, reply, length, effect, role)    \
  absl::Status name(const v1::request& in, v1::reply* out) override { \
    Look(in);                                                         \
    return next_->name(in, out);                                      \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

 private:
  template <class Request>
  void Look(const Request&) {}
  void Look(const v1::DecideRequest& request) {
    if (seen) seen(request);
  }
  ControlPlane* const next_;
};

class DecisionCheckTest : public testing::Test {
 protected:
  DecisionCheckTest() : fleet_(2, Base()), tap_(&fleet_.address(0)) {
    std::vector<ServerLink> links = fleet_.Links();
    links[0].control = &tap_;
    v1::Schema schema = TestSchema();
    schema.mutable_tables(kDeep)->mutable_bounds()->set_expire_days(3);
    client_ = Connected(std::move(links));
    EXPECT_EQ(client_->CreateTables(schema), absl::OkStatus());
    EXPECT_EQ(client_->ClaimTerm(), absl::OkStatus());
    EXPECT_EQ(CommitKeys(*client_, TestKeys(40)), absl::OkStatus());
    EXPECT_EQ(CommitKeys(*client_, TestKeys(60)), absl::OkStatus());
  }
  ServerOptions Base() const {
    ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 4;
    return options;
  }
  absl::Status Decide(const v1::DecideRequest& request) {
    v1::DecideReply reply;
    return fleet_.address(0).Decide(request, &reply);
  }

  TempFolder folder_;
  RestartableFleet fleet_;
  DecideTap tap_;
  std::unique_ptr<ParameterClient> client_;
};

TEST_F(DecisionCheckTest, RefusesManifestsThatTheServersHaveNotPrepared) {
  using Change = std::function<void(v1::Manifest&)>;
  const auto new_file = [](v1::Manifest& m, uint32_t server) -> v1::RowFile& {
    return *std::find_if(m.mutable_files()->begin(), m.mutable_files()->end(),
                         [&](const v1::RowFile& file) {
                           return file.commit() == m.commit() && file.server() == server;
                         });
  };
  const std::vector<std::pair<std::string, Change>> lies = {
      {"no files", [](v1::Manifest& m) { m.clear_files(); }},
      {"no new file of server 1",
       [&](v1::Manifest& m) { new_file(m, 1).set_commit(m.commit() - 1); }},
      {"wrong size",
       [&](v1::Manifest& m) { new_file(m, 1).set_bytes(new_file(m, 1).bytes() + 1); }},
      {"wrong size of its own file",
       [&](v1::Manifest& m) { new_file(m, 0).set_bytes(new_file(m, 0).bytes() + 1); }},
      {"wrong hash", [&](v1::Manifest& m) { new_file(m, 1).set_root(1); }},
      {"a name that leads out",
       [&](v1::Manifest& m) { new_file(m, 1).set_name("../../etc/passwd"); }},
      {"a name of another file", [&](v1::Manifest& m) { new_file(m, 1).set_name("delta-9-9-9"); }},
      {"a delta that is called a base",
       [&](v1::Manifest& m) { new_file(m, 1).set_base(!new_file(m, 1).base()); }},
      {"a file with another term", [&](v1::Manifest& m) { new_file(m, 1).set_epoch(0); }},
      {"an older file left out",
       [](v1::Manifest& m) {
         for (int i = 0; i < m.files_size(); ++i) {
           if (m.files(i).commit() == m.commit()) continue;
           m.mutable_files()->DeleteSubrange(i, 1);
           return;
         }
       }},
      {"too few rows", [](v1::Manifest& m) { m.mutable_tables(kDeep)->set_rows(0); }},
      {"another digest", [](v1::Manifest& m) { m.mutable_tables(kDeep)->set_digest(1); }},
      {"another pass", [](v1::Manifest& m) { m.set_pass(m.pass() + 1); }},
      {"the pass before", [](v1::Manifest& m) { m.set_pass(m.pass() - 1); }},
      {"another schema",
       [](v1::Manifest& m) { m.mutable_schema()->mutable_tables(0)->set_seed(1); }},
      {"no schema", [](v1::Manifest& m) { m.clear_schema(); }},
      {"another cluster", [](v1::Manifest& m) { m.set_cluster("other"); }},
      {"other shards", [](v1::Manifest& m) { m.set_shard_num(8); }},
      {"other servers", [](v1::Manifest& m) { m.set_server_num(1); }},
      {"a later commit", [](v1::Manifest& m) { m.set_commit(m.commit() + 1); }},
      {"the highest commit", [](v1::Manifest& m) { m.set_commit(~uint64_t{0}); }},
      {"another history", [](v1::Manifest& m) { m.set_previous(m.previous() + 1); }},
      {"steps without end",
       [](v1::Manifest& m) { m.mutable_clock()->set_step(uint64_t{1} << 63); }},
      {"another day", [](v1::Manifest& m) { m.mutable_days()->mutable_days(0)->set_day(1); }},
      {"no days", [](v1::Manifest& m) { m.clear_days(); }},
  };
  int tried = 0;
  tap_.seen = [&](const v1::DecideRequest& truth) {
    for (const auto& [what, change] : lies) {
      v1::DecideRequest lie = truth;
      change(*lie.mutable_manifest());
      const absl::Status status = Decide(lie);
      EXPECT_FALSE(status.ok()) << what;
      EXPECT_NE(status.code(), Code::kInternal) << what << ": " << status;
      ++tried;
    }
  };
  EXPECT_EQ(CommitKeys(*client_, TestKeys(80)), absl::OkStatus());
  EXPECT_EQ(tried, static_cast<int>(lies.size()));
  tap_.seen = nullptr;
  const std::vector<uint64_t> digests = DigestsOf(*client_);
  for (size_t rank : {0, 1}) ASSERT_EQ(fleet_.Restart(rank), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client_), digests);
}

TEST_F(DecisionCheckTest, RefusesADecisionWithoutAPrepare) {
  v1::DecideRequest decided;
  tap_.seen = [&](const v1::DecideRequest& truth) { decided = truth; };
  ASSERT_EQ(CommitKeys(*client_, TestKeys(80)), absl::OkStatus());
  v1::Manifest& manifest = *decided.mutable_manifest();
  manifest.set_previous(0);
  for (uint64_t ahead = 1; ahead < 8; ++ahead) {
    manifest.set_commit(client_->manifest().commit() + ahead);
    manifest.set_pass(client_->committed_pass() + ahead);
    EXPECT_FALSE(Decide(decided).ok());
  }
  EXPECT_EQ(CommitKeys(*client_, TestKeys(90)), absl::OkStatus());
}

TEST_F(DecisionCheckTest, DoesNotRevealWhichFilesExist) {
  std::vector<std::string> answers;
  tap_.seen = [&](const v1::DecideRequest& truth) {
    for (const char* name : {"../manifest", "../../../../../etc/passwd", "../nothing-there"}) {
      v1::DecideRequest lie = truth;
      v1::RowFile* file = lie.mutable_manifest()->add_files();
      *file = truth.manifest().files(0);
      file->set_name(name);
      std::string answer(Decide(lie).message());
      EXPECT_THAT(answer, HasSubstr("cannot be a name"));
    }
  };
  EXPECT_EQ(CommitKeys(*client_, TestKeys(80)), absl::OkStatus());
}

// A well-formed manifest whose totals differ from those of its files, as an older version would
// have decided it.
TEST_F(DecisionCheckTest, RecoveryRefusesACommitThatDoesNotAddUp) {
  LocalFileSystem disk;
  {
    const auto folder = StateFolder::OpenToRead(disk, StateFolderOf(folder_.path())).value();
    v1::Manifest manifest = client_->manifest();
    manifest.set_previous(client_->manifest().commit());
    const ParsedManifest newest = folder->ReadManifest(manifest.commit()).value();
    manifest = newest.manifest;
    manifest.set_commit(newest.manifest.commit() + 1);
    manifest.set_previous(newest.self_xxh3);
    manifest.mutable_tables(kDeep)->set_rows(0);
    ASSERT_EQ(folder->WriteManifest(manifest).status(), absl::OkStatus());
  }
  fleet_.Kill(0);
  const absl::Status started = fleet_.Start(0);
  EXPECT_EQ(started.code(), Code::kDataLoss);
  EXPECT_THAT(std::string(started.message()), HasSubstr("table 'deep'"));
}

}  // namespace
}  // namespace cistern::server
