#include "common/tls/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/tls/tls_files.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CertificateRequest ServerRequest() {
  CertificateRequest request;
  request.name = "server-0";
  request.roles = {{"ads", Role::kServer}};
  request.hosts = {"ps-0", "*.ps.example.com", "10.0.0.7", "fd00::7"};
  return request;
}

TEST(Authority, SignsWhatTheRequestSays) {
  const absl::StatusOr<KeyedCertificate> authority = MakeAuthority("Ads fleet", absl::Hours(24));
  ASSERT_TRUE(authority.ok()) << authority.status();
  const absl::StatusOr<KeyedCertificate> made = Issue(*authority, ServerRequest());
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::StatusOr<Certificate> read = ParseCertificate(made->cert);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "server-0");
  EXPECT_THAT(read->hosts, ElementsAre("ps-0", "*.ps.example.com", "10.0.0.7", "fd00::7"));
  EXPECT_THAT(read->roles, ElementsAre(Membership{"ads", Role::kServer}));
  EXPECT_FALSE(read->is_authority);
  EXPECT_TRUE(ParseCertificate(authority->cert)->is_authority);
  EXPECT_TRUE(CheckPair({made->cert, made->key, authority->cert}).ok());
  EXPECT_TRUE(CheckTrusted({made->cert, made->key, authority->cert}).ok());
}

TEST(Authority, OutlivesNoCertificateAndIsRenewedWithItsKey) {
  const KeyedCertificate authority = *MakeAuthority("a", absl::Hours(1));
  CertificateRequest request = ServerRequest();
  request.lifetime = absl::Hours(100);
  const KeyedCertificate made = *Issue(authority, request);
  EXPECT_EQ(ParseCertificate(made.cert)->valid_until,
            ParseCertificate(authority.cert)->valid_until);
  const KeyedCertificate renewed = *MakeAuthority("a", absl::Hours(1000), authority.key);
  EXPECT_TRUE(CheckTrusted({made.cert, made.key, renewed.cert}).ok());
  const absl::Status other =
      CheckTrusted({made.cert, made.key, MakeAuthority("a", absl::Hours(1))->cert});
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
}

TEST(Authority, RenewsAnyCertificateWithItsKey) {
  const KeyedCertificate authority = *MakeAuthority("a", absl::Hours(1));
  const KeyedCertificate before = *Issue(authority, ServerRequest());
  const KeyedCertificate after = *Issue(authority, ServerRequest(), before.key);
  EXPECT_TRUE(CheckPair({after.cert, before.key, ""}).ok());
  EXPECT_NE(ParseCertificate(after.cert)->serial, ParseCertificate(before.cert)->serial);
  EXPECT_FALSE(CheckPair({after.cert, Issue(authority, ServerRequest())->key, ""}).ok());
}

TEST(Authority, RefusesBadRequests) {
  const KeyedCertificate authority = *MakeAuthority("a", absl::Hours(1));
  const auto error = [&](const std::function<void(CertificateRequest*)>& change) {
    CertificateRequest request = ServerRequest();
    change(&request);
    const absl::Status status = Issue(authority, request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error([](auto* r) { r->name = ""; }), HasSubstr("name of a certificate"));
  EXPECT_THAT(error([](auto* r) { r->name = "a\nb"; }), HasSubstr("name of a certificate"));
  EXPECT_THAT(error([](auto* r) { r->name = std::string(65, 'a'); }), HasSubstr("1 to 64"));
  EXPECT_THAT(error([](auto* r) { r->roles = {}; }), HasSubstr("needs a role"));
  EXPECT_THAT(error([](auto* r) { r->roles[0].cluster = "a/b"; }), HasSubstr("cistern://"));
  EXPECT_THAT(error([](auto* r) { r->roles[0].cluster = "a,DNS:evil"; }), HasSubstr("a,DNS:evil"));
  EXPECT_THAT(error([](auto* r) { r->hosts = {}; }), HasSubstr("host names or IP addresses"));
  EXPECT_THAT(error([](auto* r) { r->hosts = {"a,URI:cistern://x/admin"}; }), HasSubstr("neither"));
  EXPECT_THAT(error([](auto* r) { r->hosts = {"a b"}; }), HasSubstr("neither"));
  EXPECT_THAT(error([](auto* r) { r->hosts = {".a"}; }), HasSubstr("neither"));
  EXPECT_THAT(error([](auto* r) { r->hosts = {"a."}; }), HasSubstr("neither"));
  EXPECT_THAT(error([](auto* r) { r->lifetime = absl::ZeroDuration(); }), HasSubstr("lifetime"));
  EXPECT_THAT(error([](auto* r) { r->lifetime = absl::InfiniteDuration(); }),
              HasSubstr("lifetime"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Issue({authority.cert, Issue(authority, ServerRequest())->key}, ServerRequest()).status()));
  const KeyedCertificate leaf = *Issue(authority, ServerRequest());
  EXPECT_TRUE(absl::IsInvalidArgument(Issue(leaf, ServerRequest()).status()));  // no authority
  EXPECT_TRUE(absl::IsInvalidArgument(Issue(authority, ServerRequest(), "no key").status()));
}

}  // namespace
}  // namespace cistern
