// The list of control-plane methods. The interface, the gRPC server and the gRPC client are all
// generated from it; proto/control_plane.proto describes each method.
#pragma once

// METHOD(name, request message, reply message, CallLength, CallEffect, Role); call_length.h and
// common/base/role.h define the last three. Each length has its own threads on a server
// (common/rpc/control_threads.h), so calls of one length never wait for calls of another. Stats
// with digests is long. The effect determines what a server does after a call that threw an
// exception (server/service/guarded_plane.h). The role is what a caller's certificate must give
// (common/rpc/call_access.h), on fleets behind TLS.
//
// clang-format off
#define CISTERN_CONTROL_METHODS(METHOD)                                                         \
  METHOD(Hello, HelloRequest, HelloReply, kLook, kChangesTables, kReader)                       \
  METHOD(ClaimEpoch, ClaimEpochRequest, PassReply, kCommit, kChangesTables, kWorker)            \
  METHOD(Meet, MeetRequest, MeetReply, kLook, kKeepsTables, kWorker)                            \
  METHOD(CreateTables, CreateTablesRequest, CreateTablesReply, kShort, kChangesTables, kWorker) \
  METHOD(BeginPass, PassRequest, PassReply, kShort, kKeepsTables, kWorker)                      \
  METHOD(SealPass, SealPassRequest, PassReply, kShort, kKeepsTables, kWorker)                   \
  METHOD(PreparePass, PreparePassRequest, PreparePassReply, kCommit, kKeepsTables, kWorker)     \
  METHOD(Decide, DecideRequest, DecideReply, kCommit, kKeepsTables, kWorker)                    \
  METHOD(StoreManifest, StoreManifestRequest, StoreManifestReply, kCommit, kKeepsTables,        \
         kWorker)                                                                               \
  METHOD(CommitPass, CommitPassRequest, PassReply, kCommit, kChangesTables, kWorker)            \
  METHOD(AbortPass, PassRequest, PassReply, kShort, kKeepsTables, kWorker)                      \
  METHOD(Save, SaveRequest, SaveReply, kLong, kKeepsTables, kAdmin)                             \
  METHOD(Load, LoadRequest, LoadReply, kLong, kChangesTables, kAdmin)                           \
  METHOD(Clear, ClearRequest, PassReply, kLong, kChangesTables, kAdmin)                         \
  METHOD(GetManifest, GetManifestRequest, GetManifestReply, kLook, kKeepsTables, kReader)       \
  METHOD(ReadState, ReadStateRequest, ReadStateReply, kShort, kKeepsTables, kReader)            \
  METHOD(Shrink, ShrinkRequest, ShrinkReply, kLong, kChangesTables, kAdmin)                     \
  METHOD(UpdateAfterSave, UpdateAfterSaveRequest, PassReply, kLong, kChangesTables, kAdmin)     \
  METHOD(Scrub, ScrubRequest, ScrubReply, kLong, kKeepsTables, kAdmin)                          \
  METHOD(Stats, StatsRequest, StatsReply, kLook, kKeepsTables, kReader)                         \
  METHOD(GetRow, GetRowRequest, GetRowReply, kLook, kKeepsTables, kReader)
// clang-format on
