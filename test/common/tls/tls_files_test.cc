#include "common/tls/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "test/support/certificates.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Connections with certificates: server_tls_test.cc, secure_channel_test.cc, tritonclient_test.py.
TEST(Tls, ReadsPemFilesAndSaysWhatIsWrong) {
  TempFolder folder;
  const std::string cert = folder / "cert", key = folder / "key", text = folder / "text";
  WriteBytes(cert, "-----BEGIN CERTIFICATE-----\n");
  WriteBytes(key, "-----BEGIN PRIVATE KEY-----\n");
  WriteBytes(text, "hello");
  EXPECT_FALSE(ReadTls({})->on());
  const absl::StatusOr<TlsPem> pem = ReadTls({cert, key, cert});
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_TRUE(pem->on());
  EXPECT_EQ(pem->key, "-----BEGIN PRIVATE KEY-----\n");
  std::filesystem::create_symlink("cert", folder / "link");  // as Kubernetes mounts secrets
  EXPECT_EQ(ReadTls({folder / "link", key, ""})->cert, pem->cert);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPair(*pem)));  // no certificates
  const auto error = [](const TlsFiles& files) {
    const absl::Status status = ReadTls(files).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_THAT(error({cert, "", ""}), HasSubstr("both a certificate and its key"));
  EXPECT_THAT(error({"", "", cert}), HasSubstr("both a certificate and its key"));
  EXPECT_THAT(error({cert, text, ""}), HasSubstr("no PEM PRIVATE KEY"));
  EXPECT_THAT(error({key, key, ""}), HasSubstr("no PEM CERTIFICATE"));
  WriteBytes(text, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_THAT(error({cert, text, ""}), HasSubstr("openssl pkey -in"));
}

// A secret that is mounted later, or is being replaced: the next start may find it.
TEST(Tls, FilesThatAreNotThereMayCome) {
  const TempFolder folder;
  const std::string cert = folder / "cert", key = folder / "key", link = folder / "link";
  WriteBytes(cert, "-----BEGIN CERTIFICATE-----\n");
  WriteBytes(key, "-----BEGIN PRIVATE KEY-----\n");
  const auto failure = [](const TlsFiles& files) {
    const absl::Status status = ReadTls(files).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(failure({cert, key, folder / "none"}), HasSubstr("none: No such file"));
  std::filesystem::create_symlink("..data/tls.crt", link);
  EXPECT_THAT(failure({link, key, ""}),
              HasSubstr("link: it is a symbolic link to ..data/tls.crt, which is not there"));
  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_THAT(ReadTls({folder / "circle", key, ""}).status().message(),
              HasSubstr("symbolic links lead in a circle"));
}

TEST(Tls, BothSidesOfAFleetNeedAllThreeFiles) {
  const TestAuthority authority, other;
  const TlsFiles good = authority.Issue("worker", {Role::kWorker});
  EXPECT_TRUE(ReadMutualTls(good).ok());
  EXPECT_FALSE(ReadMutualTls({})->on());
  const auto error = [](const TlsFiles& files) {
    const absl::Status status = ReadMutualTls(files).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_FALSE(OptionsOf(status).empty());
    return std::string(status.message());
  };
  EXPECT_THAT(error({good.cert, good.key, ""}), HasSubstr("the authority"));
  EXPECT_THAT(error({good.cert, "", good.ca}), HasSubstr("both a certificate and its key"));
  EXPECT_THAT(error({good.cert, other.Issue("a", {Role::kWorker}).key, good.ca}),
              HasSubstr("cannot be used together"));
  EXPECT_THAT(error({good.cert, good.key, other.Issue("a", {Role::kWorker}).ca}),
              HasSubstr("not accepted under its authority"));
  EXPECT_THAT(error(authority.IssueExpired("expired", {Role::kWorker})),
              HasSubstr("certificate has expired"));
}

TEST(Tls, TakesFilesFromTheEnvironment) {
  setenv("CISTERN_TLS_CERT", "/c", 1);
  setenv("CISTERN_TLS_KEY", "/k", 1);
  setenv("CISTERN_TLS_CA", "/a", 1);
  const TlsFiles files = TlsFromEnvironment();
  unsetenv("CISTERN_TLS_CERT");
  unsetenv("CISTERN_TLS_KEY");
  unsetenv("CISTERN_TLS_CA");
  EXPECT_EQ(files.cert + files.key + files.ca, "/c/k/a");
  EXPECT_FALSE(TlsFromEnvironment().on());
}

}  // namespace
}  // namespace cistern
