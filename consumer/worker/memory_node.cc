#include "consumer/worker/memory_node.h"

#include "locking/core/store/sentinel.h"

namespace fencepost::consumer {

using locking::OpKind;
using locking::Reply;
using locking::ReplyCode;
using locking::WallTime;

MemoryNode::MemoryNode(int index, int count, const locking::LockOptions& options)
    : options_(options), run_id_(locking::kRunIdSize, locking::NodeLetter(index)) {
  locking::Sentinel sentinel;
  sentinel.complete = true;
  sentinel.store_id = std::string(locking::kStoreIdSize, '1');
  sentinel.index = index;
  sentinel.nodes = count;
  sentinel.run_id = run_id_;
  sentinel.max_ttl = options.max_ttl;
  sentinel_ = sentinel.Encode();
}

locking::NodeInfo MemoryNode::Info(const locking::Now& now) const {
  return {.run_id = run_id_,
          .maxmemory_policy = "noeviction",
          .role = "master",
          .sentinel = sentinel_,
          .call = {now.boot, now.boot, now.wall}};
}

Reply MemoryNode::Answer(const locking::Op& op, WallTime now) {
  Reply reply{.lock = op.lock, .round = op.round, .kind = op.kind, .code = ReplyCode::kError};
  Name& name = names_[std::string(op.name)];
  const bool live = now < name.until;
  const bool ours = !name.done && name.nonce == op.nonce;
  reply.token = name.token;
  if (name.done && live && op.kind != OpKind::kDone) {
    reply.code = op.kind == OpKind::kAbort || op.kind == OpKind::kRelease ? ReplyCode::kStolen
                                                                          : ReplyCode::kDone;
    reply.crc = name.crc;
    reply.rest = name.until - now;
    return reply;
  }
  switch (op.kind) {
    case OpKind::kAcquire:
    case OpKind::kFill:
      if (live && !ours) {
        reply.code = ReplyCode::kContended;
        reply.rest = name.until - now;
      } else if (op.kind == OpKind::kAcquire && !ours && op.token <= name.token) {
        reply.code = ReplyCode::kStale;
      } else {
        reply.code = op.kind == OpKind::kFill ? ReplyCode::kFilled : ReplyCode::kGranted;
        name = {.token = op.token, .nonce = op.nonce, .until = now + op.ttl};
      }
      return reply;
    case OpKind::kExtend:
      reply.code = !live ? ReplyCode::kExpired : ours ? ReplyCode::kExtended : ReplyCode::kStolen;
      if (ours && live) name.until = now + op.ttl;
      return reply;
    case OpKind::kAbort:
    case OpKind::kRelease:
      reply.code = !live ? ReplyCode::kExpired : ours ? ReplyCode::kFreed : ReplyCode::kStolen;
      if (ours) name.until = {};
      return reply;
    case OpKind::kDone:
      if (name.done && live) {
        reply.code = locking::IsOtherContent(name.crc, op.crc) ? ReplyCode::kConflict
                                                               : ReplyCode::kAlreadyDone;
        reply.crc = name.crc;
        return reply;
      }
      reply.code = ours && live ? ReplyCode::kMarked : ReplyCode::kMarkedLate;
      name = {.done = true, .token = op.token, .until = now + op.ttl, .crc = op.crc};
      return reply;
    default:
      return reply;  // nobody asks a test's nodes for anything else
  }
}

void MemoryNode::Steal(std::string_view name, WallTime now) {
  names_[std::string(name)] = {.token = locking::Token::AtWall(now + locking::Millis(1)),
                               .nonce = {{1, 2}},
                               .until = now + options_.ttl};
}

}  // namespace fencepost::consumer
