#include "serve/server/http_exchange.h"

#include <gnutls/gnutls.h>

#include "absl/strings/numbers.h"

namespace cistern {

const char* Header(MHD_Connection* connection, const char* name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

absl::StatusOr<std::optional<size_t>> SizeHeader(MHD_Connection* connection, const char* name) {
  const char* text = Header(connection, name);
  if (text == nullptr) return std::nullopt;
  uint64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::InvalidArgumentError(absl::StrCat("the header ", name, " is not a number"));
}

MHD_Result QueueReply(MHD_Connection* connection, const HttpReply& reply) {
  MHD_Response* response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", reply.content_type);
  if (reply.json_bytes.has_value()) {
    MHD_add_response_header(response, kJsonBytesHeader, absl::StrCat(*reply.json_bytes).c_str());
  }
  if (reply.allow != nullptr) MHD_add_response_header(response, "Allow", reply.allow);
  if (reply.retry) MHD_add_response_header(response, "Retry-After", "1");
  if (reply.close) MHD_add_response_header(response, "Connection", "close");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(reply.status), response);
  MHD_destroy_response(response);
  return queued;
}

bool ShowsCertificate(MHD_Connection* connection) {
  const MHD_ConnectionInfo* session =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  if (session == nullptr || session->tls_session == nullptr) return false;
  unsigned problems = 0;
  const int verified = gnutls_certificate_verify_peers2(
      static_cast<gnutls_session_t>(session->tls_session), &problems);
  return verified == 0 && problems == 0;
}

}  // namespace cistern
