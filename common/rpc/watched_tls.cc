#include "common/rpc/watched_tls.h"

#include <openssl/ssl.h>

#include <utility>

#include "common/rpc/next_function.h"

namespace cistern {
namespace {

using WatchPointer = std::shared_ptr<StreamWatch>;

// Of the connection that this thread hands over to gRPC.
thread_local WatchPointer handed_over;

void FreeWatch(void*, void* watch, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<WatchPointer*>(watch);
}

// Where an SSL keeps the pointer to its watch.
int WatchIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, FreeWatch);
  return index;
}

StreamWatch* WatchOf(const SSL* ssl) {
  const auto* const watch = static_cast<WatchPointer*>(SSL_get_ex_data(ssl, WatchIndex()));
  return watch == nullptr ? nullptr : watch->get();
}

}  // namespace

TlsWatchScope::TlsWatchScope(std::shared_ptr<StreamWatch> watch) {
  handed_over = std::move(watch);
}

TlsWatchScope::~TlsWatchScope() {
  handed_over = nullptr;
}

}  // namespace cistern

// Default visibility: libgrpc.so must find these three before those of OpenSSL.
extern "C" {
#pragma GCC visibility push(default)

SSL* SSL_new(SSL_CTX* context) {
  static const auto make = cistern::NextFunction<SSL*(SSL_CTX*)>("SSL_new");
  SSL* const ssl = make(context);
  if (ssl == nullptr || cistern::handed_over == nullptr) return ssl;
  auto watch = std::make_unique<cistern::WatchPointer>(cistern::handed_over);
  if (SSL_set_ex_data(ssl, cistern::WatchIndex(), watch.get()) == 1) {
    watch.release();
    return ssl;
  }
  SSL_free(ssl);  // out of memory: no connection rather than one that nobody watches
  return nullptr;
}

int SSL_read(SSL* ssl, void* bytes, int size) {
  static const auto read = cistern::NextFunction<int(SSL*, void*, int)>("SSL_read");
  const int got = read(ssl, bytes, size);
  cistern::StreamWatch* const watch = got > 0 ? cistern::WatchOf(ssl) : nullptr;
  if (watch == nullptr) return got;
  const absl::string_view plain(static_cast<const char*>(bytes), static_cast<size_t>(got));
  return watch->FromClient(plain).ok() ? got : -1;  // which gRPC takes for an error of the protocol
}

int SSL_write(SSL* ssl, const void* bytes, int size) {
  static const auto write = cistern::NextFunction<int(SSL*, const void*, int)>("SSL_write");
  const int sent = write(ssl, bytes, size);
  cistern::StreamWatch* const watch = sent > 0 ? cistern::WatchOf(ssl) : nullptr;
  if (watch == nullptr) return sent;
  watch->FromServer({static_cast<const char*>(bytes), static_cast<size_t>(sent)});
  return sent;
}

#pragma GCC visibility pop
}
