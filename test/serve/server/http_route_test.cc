#include "serve/server/http_route.h"

#include <gtest/gtest.h>

namespace cistern::serve {
namespace {

using Kind = HttpRoute::Kind;

TEST(HttpRoute, KnowsThePathsOfTheProtocol) {
  EXPECT_EQ(RouteOf("GET", "/v2").kind, Kind::kServerMetadata);
  EXPECT_EQ(RouteOf("GET", "/v2/").kind, Kind::kServerMetadata);
  EXPECT_EQ(RouteOf("GET", "/v2/health/live").kind, Kind::kLive);
  EXPECT_EQ(RouteOf("HEAD", "/v2/health/ready").kind, Kind::kReady);
  EXPECT_EQ(RouteOf("GET", "/metrics").kind, Kind::kMetrics);
  EXPECT_EQ(RouteOf("GET", "/v2/models/ads").kind, Kind::kModelMetadata);
  EXPECT_EQ(RouteOf("GET", "/v2/models/ads/ready").kind, Kind::kModelReady);
  EXPECT_EQ(RouteOf("GET", "/v2/models/ads/config").kind, Kind::kModelConfig);
  EXPECT_EQ(RouteOf("POST", "/v2/models/ads/infer").kind, Kind::kInfer);
}

TEST(HttpRoute, ReadsModelAndVersion) {
  const HttpRoute plain = RouteOf("POST", "/v2/models/ads/infer");
  EXPECT_EQ(plain.model, "ads");
  EXPECT_EQ(plain.version, "");
  const HttpRoute versioned = RouteOf("POST", "/v2/models/a%d s/versions/12/infer");
  EXPECT_EQ(versioned.kind, Kind::kInfer);
  EXPECT_EQ(versioned.model, "a%d s");
  EXPECT_EQ(versioned.version, "12");
  EXPECT_EQ(RouteOf("GET", "/v2/models/ads/versions/12").kind, Kind::kModelMetadata);
}

TEST(HttpRoute, ReadsATargetWithSchemeAndAuthority) {
  EXPECT_EQ(RouteOf("GET", "http://127.0.0.1:8000/v2/health/ready").kind, Kind::kReady);
  EXPECT_EQ(RouteOf("GET", "HTTPS://ads.example/metrics").kind, Kind::kMetrics);
  const HttpRoute infer = RouteOf("POST", "http://h/v2/models/ads/versions/3/infer");
  EXPECT_EQ(infer.kind, Kind::kInfer);
  EXPECT_EQ(infer.model, "ads");
  for (const char* path :
       {"http://h", "http://", "http:///v2x", "ftp://h/v2", "h/v2", "http:/v2"}) {
    EXPECT_EQ(RouteOf("GET", path).kind, Kind::kUnknown) << path;
  }
}

TEST(HttpRoute, KnowsOptionsOfPathsAndOfTheServer) {
  EXPECT_EQ(RouteOf("OPTIONS", "*").kind, Kind::kOptions);
  EXPECT_EQ(RouteOf("GET", "*").kind, Kind::kUnknown);
  EXPECT_EQ(RouteOf("OPTIONS", "/v2/models/ads/infer").kind, Kind::kOptions);
  EXPECT_STREQ(RouteOf("OPTIONS", "/v2/models/ads/infer").allowed, "POST");
  EXPECT_EQ(RouteOf("OPTIONS", "/v1").kind, Kind::kUnknown);
}

TEST(HttpRoute, RefusesOtherPathsAndMethods) {
  for (const char* path :
       {"", "/", "/v1", "/v2/models", "/v2/models/", "/v2/models//infer", "/v2/models/ads/versions",
        "/v2/models/ads/unload", "/v2/models/ads/infer/x", "/v2/health", "/metrics/x"}) {
    EXPECT_EQ(RouteOf("GET", path).kind, Kind::kUnknown) << path;
  }
  EXPECT_EQ(RouteOf("GET", "/v2/models/ads/infer").kind, Kind::kWrongMethod);
  EXPECT_STREQ(RouteOf("GET", "/v2/models/ads/infer").allowed, "POST");
  EXPECT_EQ(RouteOf("DELETE", "/v2/models/ads").kind, Kind::kWrongMethod);
  EXPECT_STREQ(RouteOf("DELETE", "/v2/models/ads").allowed, "GET");
}

}  // namespace
}  // namespace cistern::serve
