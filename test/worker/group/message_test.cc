#include "worker/group/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace cistern::group {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MessageReader, ReadsWhatWasPut) {
  std::string message;
  PutArray<uint64_t>({}, &message);
  PutArray<float>({1.5f, -2.0f}, &message);
  PutArray<uint32_t>({}, &message);
  MessageReader reader(message, 3);
  std::vector<uint64_t> keys;
  EXPECT_TRUE(reader.TakeArray(&keys).ok());
  EXPECT_THAT(keys, IsEmpty());
  std::vector<float> floats;
  EXPECT_TRUE(reader.TakeArray(&floats).ok());
  EXPECT_THAT(floats, ElementsAre(1.5f, -2.0f));
  std::vector<uint32_t> rest;
  EXPECT_TRUE(reader.TakeArray(&rest).ok());
  EXPECT_THAT(rest, IsEmpty());
  EXPECT_TRUE(reader.at_end());
}

TEST(MessageReader, NamesTheSenderOfAShortMessage) {
  std::string message;
  PutArray<float>({1.5f, -2.0f}, &message);
  message.pop_back();
  MessageReader reader(message, 3);
  std::vector<float> floats;
  const absl::Status status = reader.TakeArray(&floats);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 3 sent too little"));
  EXPECT_THAT(floats, IsEmpty());
}

}  // namespace
}  // namespace cistern::group
