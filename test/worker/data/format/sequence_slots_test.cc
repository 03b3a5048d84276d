#include "worker/data/format/sequence_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Gives samples that a test made, then the error.
class MadeReader : public SampleReader {
 public:
  MadeReader(SampleBlock block, absl::Status end)
      : block_(std::move(block)), end_(std::move(end)) {}
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    const size_t count = std::min(max_samples, block_.size - read_);
    block->Append(block_, read_, count);
    read_ += count;
    if (count == 0 && !end_.ok()) return end_;
    return count;
  }

 private:
  const SampleBlock block_;
  const absl::Status end_;
  size_t read_ = 0;
};

// Two samples of two slots: [5 6 7] and [8], [] and [9 10].
SampleBlock SlotSamples() {
  SampleBlock block;
  block.Reset(1);
  block.size = 2;
  block.label = {1, 0};
  block.dense = {0.5f, 2};
  block.sparse[0] = {{0, 3, 4, 4, 6}, {5, 6, 7, 8, 9, 10}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f}};
  return block;
}

SparseColumn PlacesOf(const SequenceSlots& sequences) {
  const SampleBlock block = SlotSamples();
  SparseColumn places;
  AppendPlaces(sequences, 2, block.sparse[0].offsets, block.sparse[0].keys, block.sparse[0].weights,
               &places);
  return places;
}

TEST(SequenceSlots, TheLastKeysHavePlaces) {
  const SparseColumn places = PlacesOf({{2, 0}, true});
  EXPECT_THAT(places.keys, ElementsAre(6, 7, 8, 9, 10));
  EXPECT_THAT(places.weights, ElementsAre(0.2f, 0.3f, 0.4f, 0.5f, 0.6f));
  EXPECT_THAT(places.offsets, ElementsAre(0, 1, 2, 3, /*sample 1*/ 3, 3, 5));
}

TEST(SequenceSlots, OrTheFirst) {
  const SparseColumn places = PlacesOf({{2, 1}, false});
  EXPECT_THAT(places.keys, ElementsAre(5, 6, 8, 9));
  EXPECT_THAT(places.offsets, ElementsAre(0, 1, 2, 3, 3, 3, 4));
}

TEST(SequenceSlots, OrInReverseOrder) {
  const SparseColumn places = PlacesOf({{2, 3}, true, true});
  EXPECT_THAT(places.keys, ElementsAre(7, 6, 8, 10, 9));
  EXPECT_THAT(places.weights, ElementsAre(0.3f, 0.2f, 0.4f, 0.6f, 0.5f));
  EXPECT_THAT(places.offsets, ElementsAre(0, 1, 2, 3, 3, 3, 3, 3, 4, 5, 5));
}

TEST(SequenceSlots, FillTheirPlacesFromTheFirstOn) {
  const SparseColumn places = PlacesOf({{4, 3}, true});
  EXPECT_THAT(places.keys, ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(places.offsets, ElementsAre(0, 1, 2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 6, 6));
}

TEST(SequenceSlots, SayWhereASlotIs) {
  const SequenceSlots sequences = {{3, 0, 2}, true};
  EXPECT_EQ(data::PlacesOf(sequences, 3), 6u);
  EXPECT_EQ(PlacesOfSlot(sequences, 0).count, 3u);
  EXPECT_EQ(PlacesOfSlot(sequences, 1).first, 3u);
  EXPECT_EQ(PlacesOfSlot(sequences, 1).count, 1u);
  EXPECT_EQ(PlacesOfSlot(sequences, 2).first, 4u);
  EXPECT_EQ(PlacesOfSlot({}, 2).first, 2u);
}

TEST(SequenceSlots, AReaderKeepsLabelsAndTheSamplesBeforeAnError) {
  const auto reader =
      WithPlaces(std::make_unique<MadeReader>(SlotSamples(), absl::DataLossError("damaged")),
                 {{{2, 0}, true}}, {2});
  SampleBlock block;
  block.Reset(1);
  ASSERT_EQ(*reader->Read(1, &block), 1u);
  ASSERT_EQ(*reader->Read(1, &block), 1u);
  EXPECT_EQ(block.size, 2u);
  EXPECT_THAT(block.label, ElementsAre(1, 0));
  EXPECT_THAT(block.dense, ElementsAre(0.5f, 2));
  EXPECT_THAT(block.sparse[0].offsets, ElementsAre(0, 1, 2, 3, 3, 3, 5));
  EXPECT_EQ(reader->Read(1, &block).status().message(), "damaged");
  EXPECT_EQ(block.size, 2u);
}

TEST(SequenceSlots, ASkippedSampleIsNotRead) {
  const auto reader = WithPlaces(std::make_unique<MadeReader>(SlotSamples(), absl::OkStatus()),
                                 {{{2, 0}, true}}, {2});
  SampleBlock block;
  block.Reset(1);
  ASSERT_EQ(*reader->Skip(1, &block), 1u);
  EXPECT_THAT(block.sparse[0].keys, IsEmpty());
  ASSERT_EQ(*reader->Read(5, &block), 1u);
  EXPECT_THAT(block.sparse[0].keys, ElementsAre(9, 10));
}

TEST(SequenceSlots, WithoutThemTheReaderIsTheSame) {
  auto made = std::make_unique<MadeReader>(SlotSamples(), absl::OkStatus());
  const SampleReader* const given = made.get();
  EXPECT_EQ(WithPlaces(std::move(made), {{}}, {2}).get(), given);
}

}  // namespace
}  // namespace cistern::data
