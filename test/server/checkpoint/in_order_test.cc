#include "server/checkpoint/in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>

namespace cistern::server {
namespace {

using Pieces = InOrder<std::unique_ptr<size_t>>;

// Pieces of different lengths, so that later pieces are often made before earlier ones.
std::unique_ptr<size_t> Made(size_t i) {
  volatile size_t work = (i * 7919) % 13 * 1000;
  while (work > 0) work = work - 1;
  return std::make_unique<size_t>(i);
}

TEST(InOrder, TakesEveryPieceOnceAndInOrder) {
  ThreadPool pool(4);
  for (const size_t window : {size_t{1}, size_t{2}, size_t{8}, size_t{1000}}) {
    std::vector<size_t> taken;
    Pieces pieces(window, Made, [&](size_t i, std::unique_ptr<size_t> piece) {
      EXPECT_EQ(i, *piece);
      taken.push_back(*piece);  // by one thread at a time
      return absl::OkStatus();
    });
    ASSERT_TRUE(pieces.Run(500, pool).ok());
    ASSERT_EQ(taken.size(), 500u);
    for (size_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i], i);
  }
}

TEST(InOrder, HoldsAtMostAWindowOfPieces) {
  ThreadPool pool(4);
  std::atomic<int> there{0}, most{0};
  Pieces pieces(
      3,
      [&](size_t i) {
        const int now = ++there;
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        return Made(i);
      },
      [&](size_t, std::unique_ptr<size_t>) {
        --there;
        return absl::OkStatus();
      });
  ASSERT_TRUE(pieces.Run(300, pool).ok());
  EXPECT_LE(most, 3);
}

TEST(InOrder, TakesNothingAfterAnError) {
  ThreadPool pool(4);
  size_t last = 0;
  Pieces pieces(4, Made, [&](size_t i, std::unique_ptr<size_t>) {
    last = i;
    return i == 20 ? absl::DataLossError("no more") : absl::OkStatus();
  });
  EXPECT_EQ(pieces.Run(500, pool), absl::DataLossError("no more"));
  EXPECT_EQ(last, 20u);
}

TEST(InOrder, RunningOutOfMemoryEndsTheRunOnAnyThread) {
  ThreadPool pool(4);
  for (const bool taking : {false, true}) {
    const auto fail = [&](bool now) {
      if (now) throw std::bad_alloc();
    };
    Pieces pieces(
        2,
        [&](size_t i) {
          fail(!taking && i == 30);
          return Made(i);
        },
        [&](size_t i, std::unique_ptr<size_t>) {
          fail(taking && i == 30);
          return absl::OkStatus();
        });
    EXPECT_THROW(pieces.Run(500, pool).IgnoreError(), std::bad_alloc);
  }
}

TEST(InOrder, TakesNothingFromZeroPieces) {
  ThreadPool pool(2);
  Pieces pieces(2, Made, [](size_t, std::unique_ptr<size_t>) {
    ADD_FAILURE();
    return absl::OkStatus();
  });
  EXPECT_TRUE(pieces.Run(0, pool).ok());
}

}  // namespace
}  // namespace cistern::server
