// The list of control-plane methods. The interface, the gRPC server and the gRPC client are all
// generated from it; proto/control_plane.proto describes each method.
#pragma once

// METHOD(name, request message, reply message, CallLength, CallEffect); call_length.h defines both.
// Each length has its own threads on a server (common/rpc/control_threads.h), so calls of one
// length never wait for calls of another. Stats with digests is long. The effect determines what a
// server does after a call that threw an exception (server/service/guarded_plane.h).
//
// clang-format off
#define CISTERN_CONTROL_METHODS(METHOD)                                                \
  METHOD(Hello, HelloRequest, HelloReply, kLook, kChangesTables)                       \
  METHOD(ClaimEpoch, ClaimEpochRequest, PassReply, kCommit, kChangesTables)            \
  METHOD(Meet, MeetRequest, MeetReply, kLook, kKeepsTables)                            \
  METHOD(CreateTables, CreateTablesRequest, CreateTablesReply, kShort, kChangesTables) \
  METHOD(BeginPass, PassRequest, PassReply, kShort, kKeepsTables)                      \
  METHOD(SealPass, SealPassRequest, PassReply, kShort, kKeepsTables)                   \
  METHOD(PreparePass, PreparePassRequest, PreparePassReply, kCommit, kKeepsTables)     \
  METHOD(Decide, DecideRequest, DecideReply, kCommit, kKeepsTables)                    \
  METHOD(CommitPass, CommitPassRequest, PassReply, kCommit, kChangesTables)            \
  METHOD(AbortPass, PassRequest, PassReply, kShort, kKeepsTables)                      \
  METHOD(Save, SaveRequest, SaveReply, kLong, kKeepsTables)                            \
  METHOD(Load, LoadRequest, LoadReply, kLong, kChangesTables)                          \
  METHOD(Clear, ClearRequest, PassReply, kLong, kChangesTables)                        \
  METHOD(GetManifest, GetManifestRequest, GetManifestReply, kLook, kKeepsTables)       \
  METHOD(Shrink, ShrinkRequest, ShrinkReply, kLong, kChangesTables)                    \
  METHOD(UpdateAfterSave, UpdateAfterSaveRequest, PassReply, kLong, kChangesTables)    \
  METHOD(Scrub, ScrubRequest, ScrubReply, kLong, kKeepsTables)                         \
  METHOD(Stats, StatsRequest, StatsReply, kLook, kKeepsTables)                         \
  METHOD(GetRow, GetRowRequest, GetRowReply, kLook, kKeepsTables)
// clang-format on
