#include "worker/data/recipe/cell_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::data {
namespace {

using testing::ElementsAre;

// "name=text" of each member; nothing for a field without an object.
std::vector<std::string> Read(absl::string_view field) {
  std::vector<JsonMember> members;
  std::vector<std::string> texts;
  if (!ReadCellMembers(field, &members)) return {"none"};
  for (const JsonMember& member : members) texts.push_back(member.name + "=" + member.text);
  return texts;
}

TEST(ReadCellMembers, ReadsJson) {
  EXPECT_THAT(Read(R"({"device": "d3", "price": 1.50})"), ElementsAre("device=d3", "price=1.50"));
  EXPECT_THAT(Read(R"( {"user":{"id":7,"new":true},"tags":["a","b"],"x":null} )"),
              ElementsAre("user.id=7", "user.new=1", "tags=a|b", "x="));
  EXPECT_THAT(Read("{}"), ElementsAre());
}

TEST(ReadCellMembers, ReadsWhatPythonPrints) {
  EXPECT_THAT(Read(R"({'device': 'd3', 'new': True, 'x': None, 'p': nan, 'n': -2})"),
              ElementsAre("device=d3", "new=1", "x=", "p=", "n=-2"));
  EXPECT_THAT(Read(R"({'a': "it's", 'b': 'say "x"', 'c': 'it\'s', 'd': 'True'})"),
              ElementsAre("a=it's", "b=say \"x\"", "c=it's", "d=True"));
}

TEST(ReadCellMembers, ReadsPairs) {
  EXPECT_THAT(Read("device=d3&p=1.5"), ElementsAre("device=d3", "p=1.5"));
  EXPECT_THAT(Read("?q=a%20b+c%C3%BC&p="), ElementsAre("q=a b c\xc3\xbc", "p="));
  EXPECT_THAT(Read("device:d3; price: 1.5"), ElementsAre("device=d3", "price=1.5"));
  EXPECT_THAT(Read("device=d3,url=http://x/?a=1"), ElementsAre("device=d3", "url=http://x/?a=1"));
  EXPECT_THAT(Read("a=1|b=x y"), ElementsAre("a=1", "b=x y"));
  EXPECT_THAT(Read("a=1 b=2"), ElementsAre("a=1", "b=2"));
  EXPECT_THAT(Read("a=50%&b=1"), ElementsAre("a=50%", "b=1"));
  EXPECT_THAT(Read(R"("device"=>"d3", "p"=>"1.5")"), ElementsAre("device=d3", "p=1.5"));  // hstore
  EXPECT_THAT(Read("device->d3, p->1.5"), ElementsAre("device=d3", "p=1.5"));
  EXPECT_THAT(Read("device=d 3"), ElementsAre("device=d 3"));
}

// What dataclasses of Python, rows of Spark, records and maps of Java, and Guava print.
TEST(ReadCellMembers, ReadsPrintedObjects) {
  for (const char* const field :
       {"Context(device='d3', p=1.5)", "Row(device='d3', p=1.5)", "Context[device=d3, p=1.5]",
        "Context{device=d3, p=1.5}", "{device=d3, p=1.5}", "device=d3/p=1.5", "device=d3\tp=1.5",
        "<c><device>d3</device><p>1.5</p></c>"}) {
    EXPECT_THAT(Read(field), ElementsAre("device=d3", "p=1.5")) << field;
  }
  EXPECT_THAT(Read(R"({"url": "http://x/?a=1,b=2"})"), ElementsAre("url=http://x/?a=1,b=2"));
  for (const char* const field : {"{1=0.5, 2=0.7}", "array([1, 2], dtype=int8)", "{a, b}", "(a=1)",
                                  "https://x.org/a=1/b", "<a><b>"}) {
    EXPECT_THAT(Read(field), ElementsAre("none")) << field;
  }
}

TEST(ReadCellMembers, ReadsWhatWasWrittenTwice) {
  EXPECT_THAT(Read(R"("{\"device\": \"d3\", \"p\": 1.5}")"), ElementsAre("device=d3", "p=1.5"));
  EXPECT_THAT(Read("%7B%22device%22%3A%20%22d3%22%2C%22p%22%3A1.5%7D"),
              ElementsAre("device=d3", "p=1.5"));
}

TEST(ReadCellMembers, ReadsListsOfMembers) {
  EXPECT_THAT(Read(R"([{"name": "device", "value": "d3"}, {"value": 1.5, "name": "p"}])"),
              ElementsAre("device=d3", "p=1.5"));
  EXPECT_THAT(Read("[{'key': 'device', 'value': 'd3'}, {'key': 'new', 'value': True}]"),
              ElementsAre("device=d3", "new=1"));
  EXPECT_THAT(Read(R"([ {"device": "d3"}, {"p": null}])"), ElementsAre("device=d3", "p="));
  EXPECT_THAT(Read("device: d3\np: 1.5"), ElementsAre("device=d3", "p=1.5"));
  for (const char* const field : {R"([{"id": 7, "price": 1.5}])", R"([{"a": [1]}])", R"([{}])",
                                  R"([{"name": "a", "value": 1}, {"name": "a", "value": 2}])"}) {
    EXPECT_THAT(Read(field), ElementsAre("none")) << field;
  }
}

TEST(ReadCellMembers, OthersAreNone) {
  for (const char* const field :
       {"", "red", "10:30", "d3", "[1, 2]", "{1,2}", "{a,b}", "{\"a\": 1", "a=1&a=2", "a=1&b",
        "https://x.com/?a=b&c=d", "Mozilla/5.0 (X11; rv:1.0)", "{'a': datetime(2024, 1, 1)}",
        "\"red\"", "\"{x", "%7Bx%7D", "a-b>c", "0.5 0.7"}) {
    EXPECT_THAT(Read(field), ElementsAre("none")) << field;
  }
}

}  // namespace
}  // namespace cistern::data
