#include "serve/server/http_exchange.h"

#include <gnutls/gnutls.h>

#include <cstring>
#include <new>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/secret.h"

namespace cistern::serve {

namespace {

// How often a header is there.
int Occurrences(MHD_Connection* connection, absl::string_view name) {
  std::pair<absl::string_view, int> counted = {name, 0};
  const auto count = [](void* to, MHD_ValueKind, const char* key, const char*) {
    auto* const found = static_cast<std::pair<absl::string_view, int>*>(to);
    found->second += absl::EqualsIgnoreCase(key, found->first) ? 1 : 0;
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, +count, &counted);
  return counted.second;
}

// As much of a header as a message quotes.
absl::string_view Shown(absl::string_view text) {
  return text.substr(0, 40);
}

// Whether all of `text` is letters, digits and characters of `marks`.
bool ConsistsOf(absl::string_view text, absl::string_view marks) {
  return absl::c_all_of(text, [marks](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(marks, c);
  });
}

// RFC 9110, 5.6.2.
bool IsToken(absl::string_view text) {
  return !text.empty() && ConsistsOf(text, "!#$%&'*+-.^_`|~");
}

// A name or an address, IPv6 in brackets, with or without a port; an empty one is allowed (RFC
// 3986, 3.2.2).
bool IsHost(absl::string_view text) {
  const size_t colon = text.rfind(':'), bracket = text.rfind(']');
  const bool has_port =
      colon != absl::string_view::npos && (bracket == absl::string_view::npos || bracket < colon);
  const absl::string_view port = has_port ? text.substr(colon + 1) : "";
  absl::string_view host = has_port ? text.substr(0, colon) : text;
  if (!absl::c_all_of(port, absl::ascii_isdigit)) return false;
  if (!absl::ConsumePrefix(&host, "[")) return ConsistsOf(host, "-._~!$&'()*+,;=%");
  return absl::ConsumeSuffix(&host, "]") && ConsistsOf(host, ".:");
}

absl::Status CheckOnce(MHD_Connection* connection, const char* name) {
  if (Occurrences(connection, name) <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request repeats the header ", name, "; send it once"));
}

}  // namespace

const char* Header(MHD_Connection* connection, const char* name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

absl::StatusOr<std::optional<size_t>> SizeHeader(MHD_Connection* connection, const char* name) {
  CISTERN_RETURN_IF_ERROR(CheckOnce(connection, name));
  const char* text = Header(connection, name);
  if (text == nullptr) return std::nullopt;
  uint64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::InvalidArgumentError(absl::StrCat("the header ", name, " is not a number"));
}

size_t FieldBytes(MHD_Connection* connection) {
  size_t bytes = 0;
  const auto add = [](void* to, MHD_ValueKind, const char* key, const char* value) {
    constexpr size_t kSeparators = 4;  // ": " and the end of the line
    *static_cast<size_t*>(to) +=
        std::strlen(key) + (value == nullptr ? 0 : std::strlen(value)) + kSeparators;
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, +add, &bytes);
  return bytes;
}

absl::Status CheckFieldNames(MHD_Connection* connection) {
  std::string wrong;
  const auto check = [](void* to, MHD_ValueKind, const char* key, const char*) {
    if (!IsToken(key)) *static_cast<std::string*>(to) = absl::CHexEscape(Shown(key));
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, +check, &wrong);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the request has a header '", wrong,
      "', which is no name; write a name of letters, digits and -, and the colon right after it"));
}

absl::Status CheckHost(MHD_Connection* connection, absl::string_view version) {
  CISTERN_RETURN_IF_ERROR(CheckOnce(connection, "Host"));
  const char* const host = Header(connection, "Host");
  if (host == nullptr && version != MHD_HTTP_VERSION_1_0) {
    return absl::InvalidArgumentError("the request has no header Host, which HTTP/1.1 requires");
  }
  if (host == nullptr || IsHost(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the header Host is '",
                                                 absl::CHexEscape(Shown(host)),
                                                 "'; send a host, with or without :port"));
}

absl::Status CheckFraming(MHD_Connection* connection) {
  const char* const kLength = "Content-Length";
  const char* const kCoding = "Transfer-Encoding";
  CISTERN_RETURN_IF_ERROR(CheckOnce(connection, kLength));
  CISTERN_RETURN_IF_ERROR(CheckOnce(connection, kCoding));
  const char* const coding = Header(connection, kCoding);
  if (coding == nullptr) return absl::OkStatus();
  if (Header(connection, kLength) != nullptr) {
    return absl::InvalidArgumentError(
        "the request has both Content-Length and Transfer-Encoding; send one of them");
  }
  if (absl::EqualsIgnoreCase(coding, "chunked")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Transfer-Encoding '", absl::CHexEscape(Shown(coding)),
                   "' is not supported; use chunked, or send Content-Length"));
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

void NoteAge(void* limits, MHD_Connection*, void** context, MHD_ConnectionNotificationCode what) {
  delete static_cast<absl::Time*>(std::exchange(*context, nullptr));
  const absl::Duration age = static_cast<const ServeLimits*>(limits)->max_connection_age;
  if (what != MHD_CONNECTION_NOTIFY_STARTED || age == absl::ZeroDuration()) return;
  // Connections that began together do not end together.
  const double share = 0.9 + 0.2 * static_cast<double>(NewSecret() % 1024) / 1024;
  *context = new (std::nothrow) absl::Time(absl::Now() + age * share);
}

bool IsTooOld(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info != nullptr && info->socket_context != nullptr &&
         absl::Now() >= *static_cast<const absl::Time*>(info->socket_context);
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

}  // namespace cistern::serve
