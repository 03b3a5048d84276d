// How the gRPC servers of this program treat silent connections, and how they limit memory.
#pragma once

#include <grpcpp/server_builder.h>

#include <cstdint>
#include <string>

namespace cistern {

// Closes connections of peers that are silent or gone, to make room for others. Clients reconnect
// on their own. They may probe an idle connection every 10 seconds (remote_server.cc).
void LimitConnections(grpc::ServerBuilder& builder);

// Sets gRPC's own limits. gRPC checks the length of a message only after it has received all of it,
// so ConnectionBook bounds the memory of messages. The quota, which bears the program's name,
// bounds the other costs of calls; above it gRPC cancels calls at random.
//
// max_streams: concurrent calls of a connection.
void LimitMemory(grpc::ServerBuilder& builder, const std::string& program,
                 uint64_t max_message_bytes, int max_streams, uint64_t memory_bytes);

}  // namespace cistern
