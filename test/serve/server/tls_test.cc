#include "serve/server/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// Connections with certificates: tritonclient_test.py.
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
  EXPECT_THAT(error({cert, key, folder / "none"}), HasSubstr("none"));
}

}  // namespace
}  // namespace cistern
