// What a lock node answers to a script: as many replies as were asked for, or an error that leaves
// nothing behind. The first byte chooses the script, the second the number of names.
#include <vector>

#include "locking/redis/wire.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace locking;

void CheckCall(OpKind kind, std::size_t names, std::string_view payload) {
  std::vector<Op> ops(names);
  for (std::size_t i = 0; i < names; ++i) {
    ops[i].kind = kind;
    ops[i].round = static_cast<std::uint16_t>(i + 1);
  }
  std::vector<Reply> replies(1);
  const auto header = ParseCall(kind, ops, payload, replies);
  if (!header) {
    FENCEPOST_CHECK(replies.size() == 1, "an error appends nothing");
    FENCEPOST_CHECK(IsOneLine(header.error()), Shown(header.error()));
    return;
  }
  FENCEPOST_CHECK(replies.size() == 1 + names, Shown(payload));
  for (std::size_t i = 0; i < names; ++i) {
    const Reply& reply = replies[1 + i];
    FENCEPOST_CHECK(reply.round == i + 1 && reply.kind == kind, Shown(payload));
    FENCEPOST_CHECK(reply.code <= ReplyCode::kForeign && reply.code != ReplyCode::kNoSentinel,
                    Shown(payload));
    FENCEPOST_CHECK(reply.quarantined == header->quarantined, Shown(payload));
    FENCEPOST_CHECK(reply.rest >= Millis(0), Shown(payload));
  }
}

void CheckSentinelWrite(std::string_view payload) {
  const auto answer = ParseSentinelWrite(payload);
  if (!answer) FENCEPOST_CHECK(IsOneLine(answer.error()), Shown(answer.error()));
}

}  // namespace

void OneInput(std::string_view input) {
  if (input.size() < 2) return;
  const auto script = static_cast<unsigned>(static_cast<unsigned char>(input[0])) % 10;
  const std::size_t names = static_cast<unsigned char>(input[1]) % 9;
  const std::string_view payload = input.substr(2);
  if (script < kOpKinds) return CheckCall(static_cast<OpKind>(script), names, payload);
  CheckSentinelWrite(payload);
}

}  // namespace fencepost::fuzz
