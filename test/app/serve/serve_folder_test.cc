#include "app/serve/serve_folder.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "absl/synchronization/notification.h"
#include "app/export/export_serving.h"
#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

class ServedFolders : public RunFixture {
 protected:
  ServeOptions Options() const {
    ServeOptions options;
    options.folder = folder_ + "/serving";
    options.port = options.grpc_port = 0;
    options.threads = 1;
    options.drain_seconds = 0;
    options.poll_ms = 1;
    return options;
  }
  void Export() const {
    ASSERT_TRUE(RunOf(RunOptions("run", {"solver.num_epochs=1"})).ok());
    ServingExport options;
    options.source.model.config = folder_ + "/run";
    options.version.out = folder_ + "/serving";
    const auto exported = ExportServing(options, {});
    ASSERT_TRUE(exported.ok()) << exported.status();
  }
};

TEST_F(ServedFolders, AnswerOnceTheyHaveAVersionUntilTheyAreStopped) {
  std::atomic<bool> stop = false;
  absl::Notification ready;
  ServedFolder served;
  int draining = 0;
  ServeCalls calls;
  calls.stop = &stop;
  calls.ready = [&](const ServedFolder& now) {
    served = now;
    ready.Notify();
  };
  calls.draining = [&] { ++draining; };
  absl::StatusOr<std::optional<uint64_t>> commit;
  // The folder is made while it waits.
  std::thread serving([&] { commit = ServeFolder(Options(), calls); });
  Export();
  ready.WaitForNotification();
  EXPECT_THAT(served.http, HasSubstr("127.0.0.1:"));
  EXPECT_NE(served.http, served.grpc);
  EXPECT_EQ(JsonOf(served)["http"], served.http);
  EXPECT_EQ(JsonOf(served)["ready"], true);
  stop = true;
  serving.join();
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_EQ(*commit, served.commit);
  EXPECT_EQ(draining, 0);
}

TEST_F(ServedFolders, SayThatTheyDrain) {
  Export();
  std::atomic<bool> stop = false;
  int draining = 0;
  ServeCalls calls;
  calls.stop = &stop;
  calls.ready = [&](const ServedFolder&) { stop = true; };
  calls.draining = [&] { ++draining; };
  ServeOptions options = Options();
  options.drain_seconds = 1;
  ASSERT_TRUE(ServeFolder(options, calls).ok());
  EXPECT_EQ(draining, 1);
}

TEST_F(ServedFolders, EndBeforeTheyHaveAVersion) {
  const std::atomic<bool> stop = true;
  ServeCalls calls;
  calls.stop = &stop;
  const auto commit = ServeFolder(Options(), calls);
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_EQ(*commit, std::nullopt);
}

TEST_F(ServedFolders, AreNoOtherThings) {
  ASSERT_TRUE(RunOf(RunOptions("run", {"solver.num_epochs=1"})).ok());
  const struct {
    std::string folder, message;
  } cases[] = {{folder_ + "/run", "is the folder of a training"},
               {folder_ + "/model.json", "is a file, not a serving folder"},
               {folder_, "holds other things"}};
  for (const auto& one : cases) {
    ServeOptions options = Options();
    options.folder = one.folder;
    const absl::Status status = ServeFolder(options, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(one.message));
    EXPECT_NE(FixOf(status), "");
  }
}

}  // namespace
}  // namespace cistern::app
