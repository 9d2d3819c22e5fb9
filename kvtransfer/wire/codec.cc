// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/wire/codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "baton/v1/handoff.pb.h"
#include "common/ids.h"
#include "common/outcome_proto.h"
#include "common/status_macros.h"

namespace baton::handoff {
namespace {

static_assert(kProtocolVersion == uint32_t(v1::HANDOFF_PROTOCOL_CURRENT));

constexpr size_t kMaxNameBytes = 1024;  // ids
constexpr size_t kMaxTextBytes = 4096;  // errors

// ------------------------------------------------------------------------------------------------ to bytes

v1::HandoffKey ToProto(const AttemptKey& key) {
  v1::HandoffKey proto;
  proto.set_request_id(key.request.ToBytes());
  proto.set_attempt(key.attempt);
  return proto;
}

v1::Hello ToProto(const Hello& hello) {
  v1::Hello proto;
  proto.set_protocol(hello.protocol);
  proto.set_worker_id(hello.worker_id);
  proto.set_epoch(hello.epoch);
  proto.set_numerics_id(hello.numerics_id);
  proto.set_layout(hello.layout);
  proto.set_pages_total(hello.pages_total);
  return proto;
}

void Fill(const Reserve& m, v1::HandoffMessage* out) {
  v1::Reserve& proto = *out->mutable_reserve();
  *proto.mutable_key() = ToProto(m.key);
  proto.set_tokens(uint32_t(m.tokens));
  for (const auto& hash : m.page_hashes) proto.add_page_hashes(hash.data(), hash.size());
}
void Fill(const Queued& m, v1::HandoffMessage* out) { *out->mutable_queued()->mutable_key() = ToProto(m.key); }
void Fill(const Granted& m, v1::HandoffMessage* out) {
  v1::Granted& proto = *out->mutable_granted();
  *proto.mutable_key() = ToProto(m.key);
  for (PageId page : m.pages) proto.add_page_ids(ToIndex(page));
  for (int index : m.wanted) proto.add_wanted(uint32_t(index));
}
void Fill(const Refused& m, v1::HandoffMessage* out) {
  v1::Refused& proto = *out->mutable_refused();
  *proto.mutable_key() = ToProto(m.key);
  proto.set_cause(ToProto(m.cause));
  proto.set_detail(m.detail);
  proto.set_retry_after_ms(uint32_t(absl::ToInt64Milliseconds(m.retry_after)));
}
void Fill(const CancelReserve& m, v1::HandoffMessage* out) {
  *out->mutable_cancel_reserve()->mutable_key() = ToProto(m.key);
}
void Fill(const Commit& m, v1::HandoffMessage* out) {
  v1::Commit& proto = *out->mutable_commit();
  *proto.mutable_key() = ToProto(m.key);
  proto.set_tokens(uint32_t(m.tokens));
  proto.mutable_output()->Assign(m.output.begin(), m.output.end());
  proto.set_tag(m.tag);
}
void Fill(const Committed& m, v1::HandoffMessage* out) {
  v1::Committed& proto = *out->mutable_committed();
  *proto.mutable_key() = ToProto(m.key);
  proto.set_error(m.error);
  if (!m.error.empty()) proto.set_cause(ToProto(m.cause));
}
void Fill(const Revoke& m, v1::HandoffMessage* out) { *out->mutable_revoke()->mutable_key() = ToProto(m.key); }
void Fill(const Aborted& m, v1::HandoffMessage* out) {
  v1::Aborted& proto = *out->mutable_aborted();
  *proto.mutable_key() = ToProto(m.key);
  proto.set_cause(ToProto(m.cause));
}

// ------------------------------------------------------------------------------------------------ from bytes

absl::Status Bad(const char* field, const std::string& got, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("handoff message: ", field, " is ", got, ", expected ", expected));
}

absl::Status CheckLength(const char* field, const std::string& value, size_t max) {
  if (value.size() <= max) return absl::OkStatus();
  return Bad(field, absl::StrCat(value.size(), " bytes long"), absl::StrCat("at most ", max));
}

absl::StatusOr<AttemptKey> FromProto(const v1::HandoffKey& proto) {
  absl::StatusOr<RequestId> request = RequestId::FromBytes(proto.request_id());
  if (!request.ok()) return Bad("key.request_id", absl::StrCat(proto.request_id().size(), " bytes long"), "16");
  if (proto.attempt() == 0) return Bad("key.attempt", "0", "1 or more");
  return AttemptKey{*request, proto.attempt()};
}

absl::StatusOr<int> TokensFromProto(const char* field, uint32_t tokens) {
  if (tokens == 0 || tokens > uint32_t(std::numeric_limits<int>::max())) {
    return Bad(field, absl::StrCat(tokens), "1 to 2147483647");
  }
  return int(tokens);
}

absl::StatusOr<Hello> FromProto(const v1::Hello& proto) {
  BATON_RETURN_IF_ERROR(CheckLength("hello.worker_id", proto.worker_id(), kMaxNameBytes));
  BATON_RETURN_IF_ERROR(CheckLength("hello.numerics_id", proto.numerics_id(), kMaxNameBytes));
  BATON_RETURN_IF_ERROR(CheckLength("hello.layout", proto.layout(), kMaxTextBytes));
  Hello hello;
  hello.protocol = proto.protocol();
  hello.worker_id = proto.worker_id();
  hello.epoch = proto.epoch();
  hello.numerics_id = proto.numerics_id();
  hello.layout = proto.layout();
  hello.pages_total = proto.pages_total();
  return hello;
}

absl::StatusOr<WireMessage> FromProto(const v1::Welcome& proto) {
  BATON_RETURN_IF_ERROR(CheckLength("welcome.error", proto.error(), kMaxTextBytes));
  BATON_ASSIGN_OR_RETURN(Hello self, FromProto(proto.self()));
  return Welcome{proto.error(), std::move(self)};
}

absl::StatusOr<WireMessage> FromProto(const v1::Reserve& proto) {
  Reserve message;
  BATON_ASSIGN_OR_RETURN(message.key, FromProto(proto.key()));
  BATON_ASSIGN_OR_RETURN(message.tokens, TokensFromProto("reserve.tokens", proto.tokens()));
  if (int64_t{proto.page_hashes_size()} > int64_t{message.tokens}) {
    return Bad("reserve.page_hashes", absl::StrCat(proto.page_hashes_size(), " long"), "at most one per token");
  }
  message.page_hashes.resize(size_t(proto.page_hashes_size()));
  for (size_t i = 0; i < message.page_hashes.size(); ++i) {
    const std::string& hash = proto.page_hashes(int(i));
    if (hash.size() != message.page_hashes[i].size()) {
      return Bad("reserve.page_hashes", absl::StrCat(hash.size(), " bytes long"), "32");
    }
    std::copy(hash.begin(), hash.end(), message.page_hashes[i].begin());
  }
  return Message(std::move(message));
}

// For messages that carry only their key.
template <typename M, typename Proto>
absl::StatusOr<WireMessage> KeyFromProto(const Proto& proto) {
  BATON_ASSIGN_OR_RETURN(AttemptKey key, FromProto(proto.key()));
  return Message(M{key});
}

absl::StatusOr<WireMessage> FromProto(const v1::Granted& proto) {
  Granted message;
  BATON_ASSIGN_OR_RETURN(message.key, FromProto(proto.key()));
  for (uint32_t page : proto.page_ids()) message.pages.push_back(PageId{page});
  for (uint32_t index : proto.wanted()) {
    if (index >= message.pages.size()) {
      return Bad("granted.wanted", absl::StrCat(index), absl::StrCat("below ", message.pages.size()));
    }
    message.wanted.push_back(int(index));
  }
  return Message(std::move(message));
}

absl::StatusOr<Cause> FailureFromProto(const char* field, v1::Cause proto) {
  const std::optional<Cause> cause = CauseFromProto(proto);
  if (!cause || NextStepAfter(*cause) == NextStep::kDone) {
    return Bad(field, absl::StrCat(int(proto)), "a failure of this protocol version");
  }
  return *cause;
}

absl::StatusOr<WireMessage> FromProto(const v1::Refused& proto) {
  Refused message;
  BATON_ASSIGN_OR_RETURN(message.key, FromProto(proto.key()));
  BATON_RETURN_IF_ERROR(CheckLength("refused.detail", proto.detail(), kMaxTextBytes));
  message.detail = proto.detail();
  BATON_ASSIGN_OR_RETURN(message.cause, FailureFromProto("refused.cause", proto.cause()));
  message.retry_after = absl::Milliseconds(proto.retry_after_ms());
  return Message(std::move(message));
}

absl::StatusOr<WireMessage> FromProto(const v1::Commit& proto) {
  Commit message;
  BATON_ASSIGN_OR_RETURN(message.key, FromProto(proto.key()));
  BATON_ASSIGN_OR_RETURN(message.tokens, TokensFromProto("commit.tokens", proto.tokens()));
  for (const TokenId token : proto.output()) {
    if (token < 0) return Bad("commit.output", absl::StrCat(token), "0 or more");
    message.output.push_back(token);
  }
  message.tag = proto.tag();
  return Message(message);
}

absl::StatusOr<WireMessage> FromProto(const v1::Committed& proto) {
  Committed message;
  BATON_ASSIGN_OR_RETURN(message.key, FromProto(proto.key()));
  BATON_RETURN_IF_ERROR(CheckLength("committed.error", proto.error(), kMaxTextBytes));
  message.error = proto.error();
  if (!message.error.empty()) {
    BATON_ASSIGN_OR_RETURN(message.cause, FailureFromProto("committed.cause", proto.cause()));
  }
  return Message(std::move(message));
}

absl::StatusOr<WireMessage> FromProto(const v1::Aborted& proto) {
  Aborted message;
  BATON_ASSIGN_OR_RETURN(message.key, FromProto(proto.key()));
  if (proto.cause() == v1::CAUSE_FINISHED) {
    message.cause = Cause::kFinished;
  } else {
    BATON_ASSIGN_OR_RETURN(message.cause, FailureFromProto("aborted.cause", proto.cause()));
  }
  return Message(message);
}

}  // namespace

std::string Encode(const Hello& hello) {
  v1::HandoffMessage proto;
  *proto.mutable_hello() = ToProto(hello);
  return proto.SerializeAsString();
}

std::string Encode(const Welcome& welcome) {
  v1::HandoffMessage proto;
  proto.mutable_welcome()->set_protocol(welcome.self.protocol);
  proto.mutable_welcome()->set_error(welcome.error);
  *proto.mutable_welcome()->mutable_self() = ToProto(welcome.self);
  return proto.SerializeAsString();
}

std::string Encode(const Message& message) {
  v1::HandoffMessage proto;
  std::visit([&](const auto& m) { Fill(m, &proto); }, message);
  return proto.SerializeAsString();
}

absl::StatusOr<WireMessage> Decode(std::string_view bytes) {
  v1::HandoffMessage proto;
  if (!proto.ParseFromArray(bytes.data(), int(bytes.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("handoff message: ", bytes.size(), " bytes do not parse"));
  }
  switch (proto.message_case()) {
    case v1::HandoffMessage::kHello: {
      BATON_ASSIGN_OR_RETURN(Hello hello, FromProto(proto.hello()));
      return hello;
    }
    case v1::HandoffMessage::kWelcome: return FromProto(proto.welcome());
    case v1::HandoffMessage::kReserve: return FromProto(proto.reserve());
    case v1::HandoffMessage::kQueued: return KeyFromProto<Queued>(proto.queued());
    case v1::HandoffMessage::kGranted: return FromProto(proto.granted());
    case v1::HandoffMessage::kRefused: return FromProto(proto.refused());
    case v1::HandoffMessage::kCancelReserve: return KeyFromProto<CancelReserve>(proto.cancel_reserve());
    case v1::HandoffMessage::kCommit: return FromProto(proto.commit());
    case v1::HandoffMessage::kCommitted: return FromProto(proto.committed());
    case v1::HandoffMessage::kRevoke: return KeyFromProto<Revoke>(proto.revoke());
    case v1::HandoffMessage::kAborted: return FromProto(proto.aborted());
    case v1::HandoffMessage::MESSAGE_NOT_SET: break;
  }
  return Bad("message", "not set or unknown", "a message of this protocol version");
}

}  // namespace baton::handoff
