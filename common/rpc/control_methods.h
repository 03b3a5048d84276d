// The methods of the control plane, once: interface, gRPC server and gRPC client are made from this
// list, and proto/control_plane.proto says what each is for.
#pragma once

// METHOD(name, request message, reply message, how long a call may take). kShort: it only looks or
// notes; kLong: its time grows with the tables.
#define CISTERN_CONTROL_METHODS(METHOD)                                \
  METHOD(Hello, HelloRequest, HelloReply, kShort)                      \
  METHOD(ClaimEpoch, ClaimEpochRequest, PassReply, kLong)              \
  METHOD(Meet, MeetRequest, MeetReply, kShort)                         \
  METHOD(CreateTables, CreateTablesRequest, CreateTablesReply, kShort) \
  METHOD(BeginPass, PassRequest, PassReply, kShort)                    \
  METHOD(SealPass, SealPassRequest, PassReply, kShort)                 \
  METHOD(PreparePass, PreparePassRequest, PreparePassReply, kLong)     \
  METHOD(Decide, DecideRequest, DecideReply, kLong)                    \
  METHOD(CommitPass, CommitPassRequest, PassReply, kLong)              \
  METHOD(AbortPass, PassRequest, PassReply, kShort)                    \
  METHOD(Save, SaveRequest, SaveReply, kLong)                          \
  METHOD(Load, LoadRequest, LoadReply, kLong)                          \
  METHOD(Clear, ClearRequest, PassReply, kLong)                        \
  METHOD(GetManifest, GetManifestRequest, GetManifestReply, kShort)    \
  METHOD(Shrink, ShrinkRequest, ShrinkReply, kLong)                    \
  METHOD(UpdateAfterSave, UpdateAfterSaveRequest, PassReply, kLong)    \
  METHOD(Scrub, ScrubRequest, ScrubReply, kLong)                       \
  METHOD(Stats, StatsRequest, StatsReply, kLong)                       \
  METHOD(GetRow, GetRowRequest, GetRowReply, kShort)
