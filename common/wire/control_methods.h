// The list of control-plane methods. The interface, the gRPC server and the gRPC client are all
// generated from it; proto/control_plane.proto describes each method.
#pragma once

// METHOD(name, request message, reply message, CallLength). Each length has its own threads on a
// server (control_threads.h), so calls of one length never wait for calls of another. Stats with
// digests is long (call_length.h).
#define CISTERN_CONTROL_METHODS(METHOD)                                \
  METHOD(Hello, HelloRequest, HelloReply, kLook)                       \
  METHOD(ClaimEpoch, ClaimEpochRequest, PassReply, kCommit)            \
  METHOD(Meet, MeetRequest, MeetReply, kLook)                          \
  METHOD(CreateTables, CreateTablesRequest, CreateTablesReply, kShort) \
  METHOD(BeginPass, PassRequest, PassReply, kShort)                    \
  METHOD(SealPass, SealPassRequest, PassReply, kShort)                 \
  METHOD(PreparePass, PreparePassRequest, PreparePassReply, kCommit)   \
  METHOD(Decide, DecideRequest, DecideReply, kCommit)                  \
  METHOD(CommitPass, CommitPassRequest, PassReply, kCommit)            \
  METHOD(AbortPass, PassRequest, PassReply, kShort)                    \
  METHOD(Save, SaveRequest, SaveReply, kLong)                          \
  METHOD(Load, LoadRequest, LoadReply, kLong)                          \
  METHOD(Clear, ClearRequest, PassReply, kLong)                        \
  METHOD(GetManifest, GetManifestRequest, GetManifestReply, kLook)     \
  METHOD(Shrink, ShrinkRequest, ShrinkReply, kLong)                    \
  METHOD(UpdateAfterSave, UpdateAfterSaveRequest, PassReply, kLong)    \
  METHOD(Scrub, ScrubRequest, ScrubReply, kLong)                       \
  METHOD(Stats, StatsRequest, StatsReply, kLook)                       \
  METHOD(GetRow, GetRowRequest, GetRowReply, kLook)
