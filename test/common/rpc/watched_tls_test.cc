#include "common/rpc/watched_tls.h"

#include <gtest/gtest.h>

#include <string>

#include "common/tls/openssl.h"
#include "test/support/certificates.h"

namespace cistern {
namespace {

const std::string kBeginning = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") +
                               std::string("\0\0\0\4\0\0\0\0\0", 9) +  // settings
                               std::string("\0\0\0\4\1\0\0\0\0", 9);   // acknowledged
// HEADERS of 200 bytes on stream 1; RST_STREAM of it.
const std::string kOpenStream = std::string("\0\0\xc8\1\4\0\0\0\1", 9) + std::string(200, 'h');
const std::string kResetStream("\0\0\4\3\0\0\0\0\1\0\0\0\7", 13);

// A client and a server in memory, whose server side is made in a scope.
class WatchedTlsTest : public testing::Test {
 protected:
  WatchedTlsTest() {
    SSL_CTX_use_certificate(of_server_.get(), ReadCertificate(own_.cert).get());
    SSL_CTX_use_PrivateKey(of_server_.get(), ReadKey(own_.key).get());
  }

  void Connect(std::shared_ptr<StreamWatch> watch) {
    {
      const TlsWatchScope scope(std::move(watch));
      server_.reset(SSL_new(of_server_.get()));
    }
    client_.reset(SSL_new(of_client_.get()));
    BIO *from_server = nullptr, *from_client = nullptr;
    ASSERT_EQ(BIO_new_bio_pair(&from_server, 1 << 17, &from_client, 1 << 17), 1);
    SSL_set_bio(server_.get(), from_server, from_server);
    SSL_set_bio(client_.get(), from_client, from_client);
    SSL_set_accept_state(server_.get());
    SSL_set_connect_state(client_.get());
    for (int i = 0; i < 10; ++i) {
      SSL_do_handshake(client_.get());
      SSL_do_handshake(server_.get());
    }
    ASSERT_TRUE(SSL_is_init_finished(server_.get()));
  }
  void FromClient(const std::string& bytes) {
    ASSERT_EQ(SSL_write(client_.get(), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  // The result of a read on the server's side.
  int Read() {
    char bytes[1 << 14];
    return SSL_read(server_.get(), bytes, sizeof(bytes));
  }

  const TestAuthority authority_;
  const TlsPem own_ = *ReadTls(authority_.Issue("server", {Role::kServer}));
  const OpenSslPtr<SSL_CTX> of_server_{SSL_CTX_new(TLS_method())};
  const OpenSslPtr<SSL_CTX> of_client_{SSL_CTX_new(TLS_method())};
  OpenSslPtr<SSL> server_, client_;
};

TEST_F(WatchedTlsTest, AWatchSeesPlainBytesOfBothSides) {
  const auto watch = std::make_shared<StreamWatch>(64);
  Connect(watch);
  FromClient(kBeginning + kOpenStream);
  EXPECT_EQ(Read(), static_cast<int>(kBeginning.size() + kOpenStream.size()));
  EXPECT_TRUE(watch->status().ok()) << watch->status();
  const uint64_t open = watch->held_bytes();
  EXPECT_GE(open, 200u);
  SSL_write(server_.get(), kResetStream.data(), static_cast<int>(kResetStream.size()));
  EXPECT_LT(watch->held_bytes(), open);
}

TEST_F(WatchedTlsTest, NothingIsReadOnceTheWatchFails) {
  const auto watch = std::make_shared<StreamWatch>(64);
  Connect(watch);
  FromClient("GET / HTTP/1.1\r\n\r\n");
  const int result = Read();
  EXPECT_LT(result, 0);
  // gRPC waits after these two, and closes the connection after all others.
  EXPECT_NE(SSL_get_error(server_.get(), result), SSL_ERROR_WANT_READ);
  EXPECT_NE(SSL_get_error(server_.get(), result), SSL_ERROR_ZERO_RETURN);
  EXPECT_FALSE(watch->status().ok());
  FromClient(kBeginning);
  EXPECT_LT(Read(), 0);
}

TEST_F(WatchedTlsTest, ConnectionsMadeOutsideAreNotWatched) {
  const auto watch = std::make_shared<StreamWatch>(64);
  { const TlsWatchScope scope(watch); }
  Connect(nullptr);
  FromClient("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(Read(), 18);
  EXPECT_TRUE(watch->status().ok());
}

TEST_F(WatchedTlsTest, AConnectionKeepsItsWatch) {
  auto watch = std::make_shared<StreamWatch>(64);
  const std::weak_ptr<StreamWatch> seen = watch;
  Connect(std::move(watch));
  EXPECT_FALSE(seen.expired());
  server_ = nullptr;
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace cistern
