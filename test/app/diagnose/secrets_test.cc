#include "app/diagnose/secrets.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace cistern::app {
namespace {

TEST(WithoutSecrets, ValuesOfNamesThatSaySo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"sasl.password=hunter2 next", "sasl.password=[removed] next"},
      {"SASL_PASSWORD: hunter2", "SASL_PASSWORD: [removed]"},
      {R"({"secret_key": "a\"b,c", "rows": 3})", R"({"secret_key": [removed], "rows": 3})"},
      {"serve --auth-token abc --port 1", "serve --auth-token [removed] --port 1"},
      {"serve --auth-token=abc,def", "serve --auth-token=[removed],def"},
      {"AWS_SECRET_ACCESS_KEY='x y' z", "AWS_SECRET_ACCESS_KEY=[removed] z"},
      {"X-Amz-Security-Token=a&b=1", "X-Amz-Security-Token=[removed]&b=1"},
      {"credentials = q", "credentials = [removed]"},
      {"token=", "token="},
  };
  for (const auto& [text, clean] : cases) EXPECT_EQ(WithoutSecrets(text), clean);
}

TEST(WithoutSecrets, UsersOfUrls) {
  EXPECT_EQ(WithoutSecrets("to http://me:pw@host:1/a@b and s3://bucket/x"),
            "to http://[removed]@host:1/a@b and s3://bucket/x");
  EXPECT_EQ(WithoutSecrets("kafka://u:p@w@h/t"), "kafka://[removed]@h/t");
}

TEST(WithoutSecrets, PrivateKeys) {
  EXPECT_EQ(WithoutSecrets("a\n-----BEGIN EC PRIVATE KEY-----\nMIG\nx\n"
                           "-----END EC PRIVATE KEY-----\nb\n"),
            "a\n[removed]\nb\n");
  EXPECT_EQ(WithoutSecrets("-----BEGIN PRIVATE KEY-----\nMIG"), "[removed]");
}

TEST(WithoutSecrets, OtherTextsStay) {
  for (const std::string text :
       {"", "\n", "the token was refused", "event=pass iter=10 loss=.5", "--trace a.json",
        "tokens are counted, 5 of them", "-----BEGIN CERTIFICATE-----\nMIG\n", "a:b@c", "://@"}) {
    EXPECT_EQ(WithoutSecrets(text), text == "://@" ? "://[removed]@" : text);
  }
}

}  // namespace
}  // namespace cistern::app
