#include "worker/report/html.h"

#include <gtest/gtest.h>

namespace cistern::report {
namespace {

TEST(EscapeHtml, LeavesNoMarkup) {
  EXPECT_EQ(EscapeHtml("<b a=\"x\" c='y'>&"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;");
}

TEST(EscapeHtml, KeepsUtf8AndReplacesOtherBytes) {
  EXPECT_EQ(EscapeHtml("\xC3\xA9 \xE2\x80\x93 \xF0\x9F\x98\x80"),
            "\xC3\xA9 \xE2\x80\x93 \xF0\x9F\x98\x80");
  EXPECT_EQ(EscapeHtml("a\xff\x01z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(EscapeHtml("\xE2\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut off
}

TEST(Numbers, AreWrittenForPeople) {
  EXPECT_EQ(CountHtml(0), "0");
  EXPECT_EQ(CountHtml(999), "999");
  EXPECT_EQ(CountHtml(1234567), "1,234,567");
  EXPECT_EQ(NumberHtml(0.98423, 3), "0.984");
  EXPECT_EQ(NumberHtml(-0.5, 1),
            "\xE2\x88\x92"
            "0.5");
  EXPECT_EQ(NumberHtml(std::nullopt, 3), "\xE2\x80\x93");
  EXPECT_EQ(SecondsHtml(130), "2&nbsp;m&nbsp;10&nbsp;s");
  EXPECT_EQ(TickText(200000), "200k");
  EXPECT_EQ(TickText(0.25), "0.25");
}

TEST(HtmlTable, EscapesTitlesAndFillsMissingCells) {
  HtmlTable table({{"<a>", false}, {"n"}});
  EXPECT_TRUE(table.empty());
  table.Add({"x"}, "differs");
  const std::string html = table.Html("c");
  EXPECT_NE(html.find("&lt;a&gt;"), std::string::npos);
  EXPECT_NE(html.find("<tr class=\"differs\"><th scope=\"row\">x</th><td class=\"n\">\xE2\x80\x93"),
            std::string::npos);
}

}  // namespace
}  // namespace cistern::report
