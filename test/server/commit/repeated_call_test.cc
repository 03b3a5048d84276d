// A call of a commit is repeated while the first one still runs: both get the answer of a single
// call.
#include <gtest/gtest.h>

#include <thread>

#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"

namespace cistern::server {
namespace {

// Sends every Prepare and Decide twice at once, and returns the answer of either call.
class TwiceAtOnce : public ControlPlane {
 public:
  explicit TwiceAtOnce(ControlPlane* next) : next_(next) {}

#define CISTERN_METHOD(name, request, reply, length, effect, role)    \
  absl::Status name(const v1::request& in, v1::reply* out) override { \
    return Send(#name, in, out, &ControlPlane::name);                 \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

 private:
  template <class In, class Out, class Method>
  absl::Status Send(absl::string_view name, const In& in, Out* out, Method method) {
    if (name != "PreparePass" && name != "Decide") return (next_->*method)(in, out);
    Out replies[2];
    absl::Status answers[2];
    std::thread other([&] { answers[1] = (next_->*method)(in, &replies[1]); });
    answers[0] = (next_->*method)(in, &replies[0]);
    other.join();
    const size_t heard = turn_++ % 2;
    *out = replies[heard];
    return answers[heard];
  }

  ControlPlane* const next_;
  size_t turn_ = 0;
};

TEST(RepeatedCall, PrepareAndDecideMayArriveTwiceAtOnce) {
  TempFolder folder;
  ServerOptions options;
  options.durable = true;
  options.data_dir = folder.path();
  options.shard_num = 2;
  options.threads = 1;
  const auto node = ServerNode::Create(options).value();
  ServerLink link = node->link("embedded");
  TwiceAtOnce twice(link.control);
  link.control = &twice;
  auto client = Writer({link});
  for (uint64_t pass = 1; pass <= 40; ++pass) {
    ASSERT_EQ(CommitKeys(*client, TestKeys(20)), absl::OkStatus()) << "pass " << pass;
    ASSERT_EQ(client->manifest().commit(), pass);
    ASSERT_GT(client->manifest().files_size(), 0) << "pass " << pass;
  }
}

}  // namespace
}  // namespace cistern::server
