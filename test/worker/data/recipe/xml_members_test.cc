#include "worker/data/recipe/xml_members.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace cistern::data {
namespace {

std::string Members(absl::string_view text) {
  std::vector<JsonMember> members;
  if (!ReadXmlMembers(text, &members)) return "none";
  std::string shown;
  for (const JsonMember& member : members)
    absl::StrAppend(&shown, member.name, "=", member.text, ";");
  return shown;
}

TEST(XmlMembers, AreAttributesAndInnermostElements) {
  EXPECT_EQ(Members("<c><user>u3</user><price>1.5</price></c>"), "user=u3;price=1.5;");
  EXPECT_EQ(Members("<c user=\"u3\" price='1.5'/>"), "user=u3;price=1.5;");
  EXPECT_EQ(
      Members("<?xml version=\"1.0\"?>\n<c id=\"7\">\n <a><b>x &amp;amp; y</b></a> <e/>\n</c>"),
      "id=7;b=x &amp; y;e=;");
  EXPECT_EQ(Members("<b>26.51</b>"), "b=26.51;");
}

TEST(XmlMembers, OtherTextsHaveNone) {
  for (const char* const text :
       {"", "<", "<>", "<a>", "<a><b>", "</a>", "<a>x</b>", "<a><b>1</b><b>2</b></a>",
        "<p>Hello <b>you</b></p>", "<p><b>Hello</b> you</p>", "<a>1</a><b>2</b>", "x<a>1</a>",
        "<a b>1</a>", "<a b=\"1>x</a>", "<a><!-- --></a>", "a < b > c"}) {
    EXPECT_EQ(Members(text), "none") << text;
  }
}

}  // namespace
}  // namespace cistern::data
