// The methods of the control plane, once: interface, gRPC server and gRPC client are made from this
// list, and proto/control_plane.proto says what each is for.
#pragma once

// METHOD(name, request message, reply message, CallLength). Calls of one length share threads on a
// server (control_threads.h), so that those of another never wait for them. Stats with digests is
// long (call_length.h).
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
