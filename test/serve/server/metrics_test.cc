#include "serve/server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "absl/strings/str_split.h"

namespace cistern::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ServeMetrics, CountByProtocolMethodAndOutcome) {
  ServeMetrics metrics;
  const auto ms = [](double value) { return absl::Milliseconds(value); };
  metrics.Count(Protocol::kGrpc, ServeMethod::kInfer, absl::StatusCode::kOk, ms(0.05));
  metrics.Count(Protocol::kGrpc, ServeMethod::kInfer, absl::StatusCode::kOk, ms(3));
  metrics.Count(Protocol::kHttp, ServeMethod::kInfer, absl::StatusCode::kInvalidArgument,
                absl::Seconds(20));
  metrics.Count(Protocol::kHttp, ServeMethod::kHealth, absl::StatusCode::kOk, ms(1));
  metrics.CountPrediction(100, 2600, 3);
  metrics.CountPrediction(1, 26, 0);
  metrics.CountRefused();
  const std::string text = metrics.Text({"a\"d\ns", 7, 2, 128, 4, 5, true});
  for (const char* line :
       {"cistern_serve_requests_total{protocol=\"grpc\",method=\"infer\",outcome=\"OK\"} 2\n",
        "{protocol=\"http\",method=\"infer\",outcome=\"INVALID_ARGUMENT\"} 1\n",
        "{protocol=\"http\",method=\"health\",outcome=\"OK\"} 1\n",
        "infer_seconds_bucket{protocol=\"grpc\",le=\"0.0001\"} 1\n",
        "infer_seconds_bucket{protocol=\"grpc\",le=\"0.002\"} 1\n",
        "infer_seconds_bucket{protocol=\"grpc\",le=\"0.005\"} 2\n",
        "infer_seconds_bucket{protocol=\"grpc\",le=\"+Inf\"} 2\n",
        "infer_seconds_bucket{protocol=\"http\",le=\"10\"} 0\n",
        "infer_seconds_bucket{protocol=\"http\",le=\"+Inf\"} 1\n",
        "infer_seconds_sum{protocol=\"grpc\"} 0.00305\n",
        "infer_seconds_count{protocol=\"http\"} 1\n",
        "cistern_serve_samples_total 101\n",
        "cistern_serve_keys_total 2626\n",
        "cistern_serve_unseen_keys_total 3\n",
        "cistern_serve_refused_total 1\n",
        "cistern_serve_commit 7\n",
        "cistern_serve_in_flight 2\n",
        "cistern_serve_in_flight_limit 128\n",
        "cistern_serve_logged_total 4\n",
        "cistern_serve_log_dropped_total 5\n",
        "model=\"a\\\"d\\ns\""}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ServeMetrics, HaveTheFormatOfPrometheus) {
  ServeMetrics metrics;
  metrics.Count(Protocol::kGrpc, ServeMethod::kInfer, absl::StatusCode::kOk, absl::Seconds(1));
  const std::regex sample(
      R"((cistern_serve|process)_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)");
  const std::regex comment(R"(# (HELP|TYPE) (cistern_serve|process)_[a-z_]+ .+)");
  const std::string text = metrics.Text({"ads", 1, 0, 1, 0, 0});
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(std::regex_match(std::string(line), sample) ||
                std::regex_match(std::string(line), comment))
        << line;
  }
}

TEST(ServeMetrics, SayWhetherVersionsAndCertificatesCanBeUsed) {
  ServeMetrics metrics;
  ServeGauges gauges;
  metrics.CountFirstOpen(false);
  metrics.CountFirstOpen(false);
  std::string text = metrics.Text(gauges);
  EXPECT_THAT(text, HasSubstr("cistern_serve_ready 0\n"));
  EXPECT_THAT(text, HasSubstr("cistern_serve_open_failures_total 2\n"));
  EXPECT_THAT(text, HasSubstr("cistern_serve_open_failing 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("cistern_serve_commit")));
  metrics.CountFirstOpen(true);
  gauges.model = "ads";
  gauges.ready = true;
  text = metrics.Text(gauges);
  EXPECT_THAT(text, HasSubstr("cistern_serve_ready 1\n"));
  EXPECT_THAT(text, HasSubstr("cistern_serve_open_failing 0\n"));
  gauges.open_failures = 3;
  gauges.open_failing = true;
  metrics.CountCertificates();
  metrics.SetCertificatesFailing(true);
  text = metrics.Text(gauges);
  EXPECT_THAT(text, HasSubstr("cistern_serve_open_failures_total 5\n"));
  EXPECT_THAT(text, HasSubstr("cistern_serve_open_failing 1\n"));
  EXPECT_THAT(text, HasSubstr("cistern_serve_certificates_renewed_total 1\n"));
  EXPECT_THAT(text, HasSubstr("cistern_serve_certificates_failing 1\n"));
}

}  // namespace
}  // namespace cistern::serve
