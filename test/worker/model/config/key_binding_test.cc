#include "worker/model/config/key_binding.h"

#include <gtest/gtest.h>

#include "worker/model/config/grammar_keys.h"

namespace cistern::model {
namespace {

using namespace grammar;  // NOLINT

enum class Colour { kRed, kGreen, kBlue };

struct Border {
  uint32_t width = 3;
  std::string title = "none";
};

struct Picture {
  uint64_t size = 7;
  float scale = 0.5f;
  std::optional<double> shift;
  bool sharp = false, mirrored = false, inverted = true;
  std::string form = "round";
  Colour colour = Colour::kRed;
  std::vector<std::string> names;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  std::optional<Border> frame;
  uint32_t left = 1;
};

struct Other {
  uint64_t size = 8;
};

const ObjectGrammar& BorderGrammar() {
  static const ObjectGrammar grammar{
      "frame",
      {Count({"width", &Border::width}, "columns"), String({"title", &Border::title}, "above it")}};
  return grammar;
}

const ObjectGrammar& MarginGrammar() {
  static const ObjectGrammar grammar{"margin", {Count({"left", &Picture::left}, "columns")}};
  return grammar;
}

Keys PictureKeys() {
  return {Count({"size", &Picture::size}, "pixels"),
          Number({"scale", &Picture::scale}, "factor"),
          Number({"shift", &Picture::shift}, "columns"),
          Bool({"sharp", &Picture::sharp}, "edges"),
          Word({"direction", &Picture::mirrored}, {"right", "left"}, "of reading"),
          Word({"sign", &Picture::inverted}, {"plus", "minus"}, "of colours"),
          Word({"form", &Picture::form}, {"round", "square"}, "of corners"),
          Word({"colour", &Picture::colour}, {"red", "green", "blue"}, "of lines"),
          Strings({"names", &Picture::names}, "of people"),
          MakeKey({"ranges", &Picture::ranges}, JsonKind::kRanges, "of columns"),
          Object({"frame", &Picture::frame}, JsonKind::kObject, BorderGrammar(), "around it"),
          Object("margin", JsonKind::kObject, MarginGrammar(), "beside it"),
          Count("weight", "a reader of its own takes it")};
}

TEST(KeyBinding, StoresEachValueInTheMemberOfItsRow) {
  Picture picture;
  StoreValues(PictureKeys(),
              ParseJson(R"({"size": 12, "scale": 0.25, "shift": -1.5, "sharp": true,
      "direction": "left", "sign": "plus", "form": "square", "colour": "blue",
      "names": ["a", "b"], "ranges": [[1, 2], [3, 5]], "frame": {"width": 4},
      "margin": {"left": 9}, "weight": 1})")
                  .value(),
              &picture);
  EXPECT_EQ(picture.size, 12u);
  EXPECT_EQ(picture.scale, 0.25f);
  EXPECT_EQ(picture.shift, -1.5);
  EXPECT_TRUE(picture.sharp);
  EXPECT_TRUE(picture.mirrored);   // the second word
  EXPECT_FALSE(picture.inverted);  // the first word
  EXPECT_EQ(picture.form, "square");
  EXPECT_EQ(picture.colour, Colour::kBlue);
  EXPECT_EQ(picture.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(picture.ranges, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 2}, {3, 5}}));
  ASSERT_TRUE(picture.frame.has_value());
  EXPECT_EQ(picture.frame->width, 4u);
  EXPECT_EQ(picture.frame->title, "none");
  EXPECT_EQ(picture.left, 9u);  // an object without a member of its own is a part of the struct
}

TEST(KeyBinding, LeavesMembersOfAbsentKeysAndOfOtherStructs) {
  Picture picture;
  StoreValues(PictureKeys(), ParseJson("{}").value(), &picture);
  EXPECT_EQ(picture.size, 7u);
  EXPECT_FALSE(picture.shift.has_value());
  EXPECT_FALSE(picture.frame.has_value());
  EXPECT_EQ(picture.form, "round");
  Other other;
  StoreValues(PictureKeys(), ParseJson(R"({"size": 12})").value(), &other);
  EXPECT_EQ(other.size, 8u);
}

}  // namespace
}  // namespace cistern::model
