// What gRPC's servers of this program do with connections that are silent.
#pragma once

#include <grpcpp/server_builder.h>

namespace cistern {

// Closes connections of peers that are silent or gone, to make room for others. Clients reconnect
// on their own. They may probe an idle connection every 10 seconds (remote_server.cc).
void LimitConnections(grpc::ServerBuilder& builder);

}  // namespace cistern
