#include "common/tls/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/role.h"
#include "common/tls/authority.h"

namespace cistern {
namespace {

using testing::HasSubstr;

TEST(Role, IncludesThoseBelowItAndServersMakeNoCalls) {
  EXPECT_TRUE(Permits(Role::kAdmin, Role::kReader));
  EXPECT_TRUE(Permits(Role::kWorker, Role::kWorker));
  EXPECT_FALSE(Permits(Role::kReader, Role::kWorker));
  EXPECT_FALSE(Permits(Role::kWorker, Role::kAdmin));
  EXPECT_FALSE(Permits(Role::kServer, Role::kReader));
  EXPECT_EQ(*ParseRole("worker"), Role::kWorker);
  EXPECT_THAT(std::string(ParseRole("Admin").status().message()), HasSubstr("server, reader"));
}

TEST(Certificate, RoleIsAUri) {
  EXPECT_EQ(UriOf({"ads", Role::kWorker}), "cistern://ads/worker");
  EXPECT_EQ(*ParseRoleUri("cistern://ads/worker"), (Membership{"ads", Role::kWorker}));
  EXPECT_EQ(*ParseRoleUri("cistern://*/reader"), (Membership{"*", Role::kReader}));
  for (const char* const wrong :
       {"", "cistern://", "cistern://ads", "cistern://ads/", "cistern:///admin",
        "cistern://ads/root", "cistern://ads/admin/", "cistern://ads/x/admin", "spiffe://ads/admin",
        "cistern://a d/admin", "CISTERN://ads/admin", "cistern://../admin"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRoleUri(wrong).status())) << wrong;
  }
}

TEST(Certificate, RolesHoldOnTheirClusters) {
  Certificate certificate;
  certificate.roles = {{"ads", Role::kWorker}, {"feed", Role::kReader}};
  EXPECT_TRUE(certificate.May(Role::kReader, "ads"));
  EXPECT_TRUE(certificate.May(Role::kWorker, "ads"));
  EXPECT_FALSE(certificate.May(Role::kAdmin, "ads"));
  EXPECT_FALSE(certificate.May(Role::kWorker, "feed"));
  EXPECT_FALSE(certificate.May(Role::kReader, "other"));
  EXPECT_EQ(certificate.RolesOn("ads"), "worker");
  EXPECT_EQ(certificate.RolesOn("other"), "none");
  certificate.roles.push_back({"*", Role::kAdmin});
  EXPECT_TRUE(certificate.May(Role::kAdmin, "other"));
  EXPECT_EQ(certificate.RolesOn("ads"), "worker and admin");
}

TEST(Certificate, AnythingMayBeParsed) {
  for (const std::string& text :
       {std::string(), std::string("hello"), std::string("-----BEGIN CERTIFICATE-----\nAAAA\n"),
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        std::string(100000, '-')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseCertificate(text).status()));
  }
  // Every byte of a true one changed: it parses or is refused.
  const std::string pem = MakeAuthority("a", absl::Hours(1))->cert;
  for (size_t i = 0; i < pem.size(); ++i) {
    std::string changed = pem;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    static_cast<void>(ParseCertificate(changed));
    static_cast<void>(ParseCertificate(pem.substr(0, i)));
  }
}

}  // namespace
}  // namespace cistern
