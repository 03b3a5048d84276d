#include "app/certs/certificate_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/tls/tls_files.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;

class CertificateFolderTest : public testing::Test {
 protected:
  absl::StatusOr<Certificate> Init() { return InitCertificates(files_, {.folder = certs_}); }
  absl::StatusOr<Certificate> Issue(const std::string& name, const std::vector<std::string>& roles,
                                    const std::vector<std::string>& hosts = {},
                                    uint64_t days = 90) {
    IssueCertificateOptions options;
    options.folder = certs_;
    options.name = name;
    options.roles = roles;
    options.hosts = hosts;
    options.days = days;
    return IssueCertificate(files_, options);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const std::vector<ListedCertificate> listed = *ListCertificates(files_, certs_);
    for (const ListedCertificate& entry : listed) {
      names.push_back(absl::StrCat(entry.file, entry.state.ok() ? "" : " not accepted"));
    }
    return names;
  }
  static unsigned ModeOf(const std::string& path) {
    struct stat status = {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }

  TempFolder folder_;
  const std::string certs_ = folder_ / "certs";
  LocalFileSystem files_;
};

TEST_F(CertificateFolderTest, MakesWhatAFleetNeeds) {
  ASSERT_TRUE(Init().ok());
  ASSERT_TRUE(Issue("server-0", {"server"}, {"ps-0", "10.0.0.1"}).ok());
  const absl::StatusOr<Certificate> ops = Issue("ops", {"admin"});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_TRUE(ops->May(Role::kAdmin, "cistern"));
  EXPECT_FALSE(ops->May(Role::kReader, "ads"));
  EXPECT_EQ(ModeOf(certs_ + "/ops.key"), 0600u);
  EXPECT_EQ(ModeOf(certs_ + "/ca.key"), 0600u);
  EXPECT_EQ(ModeOf(certs_ + "/ops.crt") & 0444, 0444u);
  EXPECT_THAT(Names(), ElementsAre("ca", "ops", "server-0"));
  EXPECT_TRUE(ReadMutualTls({certs_ + "/ops.crt", certs_ + "/ops.key", certs_ + "/ca.crt"}).ok());
}

TEST_F(CertificateFolderTest, OverwritesNothing) {
  ASSERT_TRUE(Init().ok());
  ASSERT_TRUE(Issue("ops", {"admin"}).ok());
  const std::string before = *ReadWhole(files_, certs_ + "/ops.crt", 1 << 20);
  EXPECT_TRUE(absl::IsAlreadyExists(Init().status()));
  const absl::Status again = Issue("ops", {"reader"}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  EXPECT_THAT(OptionsOf(again), ElementsAre("certs.renew.certs=" + certs_));
  EXPECT_EQ(*ReadWhole(files_, certs_ + "/ops.crt", 1 << 20), before);
}

TEST_F(CertificateFolderTest, RefusesWhatCannotBe) {
  const absl::Status no_authority = Issue("ops", {"admin"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(no_authority)) << no_authority;
  EXPECT_THAT(OptionsOf(no_authority), ElementsAre("certs.init.certs=" + certs_));
  ASSERT_TRUE(Init().ok());
  for (const char* const name : {"ca", "", "../ops", "a/b", ".hidden"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Issue(name, {"admin"}).status())) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Issue("a", {"root"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Issue("a", {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Issue("a", {"server"}).status()));  // without hosts
  EXPECT_TRUE(absl::IsInvalidArgument(Issue("a", {"reader"}, {}, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Issue("a", {"reader"}, {}, 1'000'000).status()));
  EXPECT_THAT(Names(), ElementsAre("ca"));
}

TEST_F(CertificateFolderTest, RenewsThoseThatExpireSoonWithTheirKeys) {
  ASSERT_TRUE(Init().ok());
  ASSERT_TRUE(Issue("short", {"worker"}, {}, 10).ok());
  ASSERT_TRUE(Issue("long", {"reader"}, {}, 90).ok());
  const std::string key = *ReadWhole(files_, certs_ + "/short.key", 1 << 20);
  RenewCertificatesOptions options;
  options.folder = certs_;
  EXPECT_THAT(*RenewCertificates(files_, options), ElementsAre("short"));
  EXPECT_THAT(*RenewCertificates(files_, options), ElementsAre());
  EXPECT_EQ(*ReadWhole(files_, certs_ + "/short.key", 1 << 20), key);
  const Certificate renewed = *ParseCertificate(*ReadWhole(files_, certs_ + "/short.crt", 1 << 20));
  EXPECT_TRUE(renewed.May(Role::kWorker, "cistern"));
  EXPECT_GT(renewed.valid_until, absl::Now() + absl::Hours(24 * 80));
  options.names = {"ca", "long"};
  options.days = 3650;
  EXPECT_THAT(*RenewCertificates(files_, options), ElementsAre("ca", "long"));
  EXPECT_THAT(Names(), ElementsAre("ca", "long", "short"));  // all still accepted
  options.names = {"none"};
  EXPECT_TRUE(absl::IsNotFound(RenewCertificates(files_, options).status()));
}

TEST_F(CertificateFolderTest, ListsWhatIsNotAccepted) {
  ASSERT_TRUE(Init().ok());
  ASSERT_TRUE(Issue("a", {"worker"}).ok());
  WriteBytes(certs_ + "/broken.crt", "hello");
  TempFolder other;
  ASSERT_TRUE(InitCertificates(files_, {.folder = other / "certs"}).ok());
  WriteBytes(certs_ + "/foreign.crt", *ReadWhole(files_, other / "certs/ca.crt", 1 << 20));
  EXPECT_THAT(Names(), ElementsAre("ca", "a", "broken not accepted", "foreign not accepted"));
}

}  // namespace
}  // namespace cistern::app
