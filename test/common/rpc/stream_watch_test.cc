// Frames are written out by hand, from RFC 9113.
#include "common/rpc/stream_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

using testing::HasSubstr;

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kContinuation = 9;
constexpr uint8_t kEndStream = 1, kAcknowledged = 1, kEndHeaders = 4;

std::string FrameOf(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame + payload;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FrameOf(kSettings, 0, 0, "");
const std::string kGreeting = kPreface + FrameOf(kSettings, kAcknowledged, 0, "");

std::string Call(uint32_t stream) {
  return FrameOf(kHeaders, kEndHeaders, stream, std::string(200, 'h')) +
         FrameOf(kData, kEndStream, stream, std::string(1000, 'd'));
}
std::string Answer(uint32_t stream) {
  return FrameOf(kData, 0, stream, "reply") +
         FrameOf(kHeaders, kEndHeaders | kEndStream, stream, "");
}

TEST(StreamWatch, LetsCallsPassHoweverTheirBytesAreCut) {
  StreamWatch watch(64);
  EXPECT_TRUE(watch.FromClient(kGreeting).ok());
  for (uint32_t stream = 1; stream < 100'000; stream += 2) {
    const std::string call = Call(stream), answer = Answer(stream);
    const size_t cut = stream % call.size();
    ASSERT_TRUE(watch.FromClient(call.substr(0, cut)).ok());
    ASSERT_TRUE(watch.FromClient(call.substr(cut)).ok()) << stream;
    watch.FromServer(answer.substr(0, cut % answer.size()));
    watch.FromServer(answer.substr(cut % answer.size()));
  }
  EXPECT_EQ(watch.held_bytes(), 0);
}

TEST(StreamWatch, LetsBytesPassOneByOne) {
  StreamWatch watch(64);
  for (const char byte : kGreeting + Call(1)) ASSERT_TRUE(watch.FromClient({&byte, 1}).ok());
  EXPECT_GT(watch.held_bytes(), 200 * 100);  // headers take more memory than bytes
  for (const char byte : Answer(1)) watch.FromServer({&byte, 1});
  EXPECT_EQ(watch.held_bytes(), 0);
}

TEST(StreamWatch, RefusesWhatIsNotHttp2) {
  StreamWatch watch(64);
  EXPECT_TRUE(absl::IsInvalidArgument(watch.FromClient("GET / HTTP/1.1\r\n")));
  EXPECT_FALSE(watch.FromClient(kPreface).ok());  // and stays refused
}

TEST(StreamWatch, RefusesHeadersWithoutAnEnd) {
  for (const size_t size : {0, 1, 1000, 16000}) {
    StreamWatch watch(64);
    ASSERT_TRUE(watch.FromClient(kGreeting + FrameOf(kHeaders, 0, 1, "")).ok());
    absl::Status status;
    int frames = 0;
    for (; status.ok() && frames < 1000; ++frames) {
      status = watch.FromClient(FrameOf(kContinuation, 0, 1, std::string(size, '\xbe')));
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << size;
    EXPECT_LE(frames, 17) << size;
    EXPECT_EQ(watch.status(), status);
  }
}

TEST(StreamWatch, RefusesCallsWithoutAcknowledgedSettings) {
  StreamWatch watch(64);
  absl::Status status = watch.FromClient(kPreface);
  uint32_t calls = 0;
  for (; status.ok() && calls < 1000; ++calls) {
    status = watch.FromClient(Call(2 * calls + 1));
    watch.FromServer(Answer(2 * calls + 1));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("settings"));
  EXPECT_LE(calls, StreamWatch::kMaxEarlyStreams + 1);
}

TEST(StreamWatch, RefusesMoreStreamsThanTheServerAllows) {
  StreamWatch watch(64);
  absl::Status status = watch.FromClient(kGreeting);
  uint32_t calls = 0;
  for (; status.ok() && calls < 1000; ++calls) status = watch.FromClient(Call(2 * calls + 1));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at once"));
  EXPECT_LE(calls, 130);
}

TEST(StreamWatch, RefusesRapidResets) {
  StreamWatch watch(64);
  absl::Status status = watch.FromClient(kGreeting);
  uint32_t calls = 0;
  for (; status.ok() && calls < 100'000; ++calls) {
    status = watch.FromClient(Call(2 * calls + 1) + FrameOf(kReset, 0, 2 * calls + 1, "1234"));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("cancels"));
  EXPECT_GE(calls, 1000);
  EXPECT_LE(calls, 2000);
  EXPECT_GT(watch.held_bytes(), 10 << 20);  // gRPC frees canceled calls later
}

TEST(StreamWatch, ForgetsStreamsThatTheServerResets) {
  StreamWatch watch(64);
  ASSERT_TRUE(watch.FromClient(kGreeting + Call(1)).ok());
  watch.FromServer(FrameOf(kReset, 0, 1, "1234"));
  EXPECT_EQ(watch.held_bytes(), 0);
}

}  // namespace
}  // namespace cistern
