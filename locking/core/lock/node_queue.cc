#include "locking/core/lock/node_queue.h"

#include <algorithm>
#include <iterator>

namespace fencepost::locking {
namespace {

// Of a batch, behind the extensions: what frees or completes a name goes before what takes it.
constexpr OpKind kSendOrder[] = {OpKind::kAbort,  OpKind::kRelease, OpKind::kDone,
                                 OpKind::kForget, OpKind::kAcquire, OpKind::kFill,
                                 OpKind::kInspect};
static_assert(std::size(kSendOrder) + 1 == kOpKinds);

}  // namespace

bool NodeQueue::Push(const Op& op) {
  const bool full = others_.size() - head_ >= kMostWhileStalled;
  if (stalled_ && (full || MustNotComeLate(op.kind))) return false;
  (op.kind == OpKind::kExtend ? extensions_ : others_).push_back(op);
  return true;
}

std::size_t NodeQueue::Take(std::vector<Op>& out) {
  if (stalled_) return 0;
  const std::size_t before = out.size();
  const std::size_t urgent = std::min(extensions_.size(), kMaxBatch);
  const auto urgent_end = extensions_.begin() + static_cast<std::ptrdiff_t>(urgent);
  out.insert(out.end(), extensions_.begin(), urgent_end);
  extensions_.erase(extensions_.begin(), urgent_end);
  const std::size_t end = std::min(others_.size(), head_ + kMaxBatch - urgent);
  // One pass a kind instead of a sort: batches mostly hold two or three kinds.
  for (const OpKind kind : kSendOrder) {
    for (std::size_t i = head_; i < end; ++i) {
      if (others_[i].kind == kind) out.push_back(others_[i]);
    }
  }
  head_ = end;
  if (head_ == others_.size() || head_ > 8 * kMaxBatch) {
    others_.erase(others_.begin(), others_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  return out.size() - before;
}

std::vector<Op> NodeQueue::Stall() {
  stalled_ = true;
  std::vector<Op> failed = Clear();
  const auto stays = std::stable_partition(failed.begin(), failed.end(),
                                           [](const Op& op) { return MustNotComeLate(op.kind); });
  others_.assign(stays, failed.end());
  failed.erase(stays, failed.end());
  return failed;
}

std::vector<Op> NodeQueue::Clear() {
  std::vector<Op> all;
  all.swap(extensions_);
  all.insert(all.end(), others_.begin() + static_cast<std::ptrdiff_t>(head_), others_.end());
  others_.clear();
  head_ = 0;
  return all;
}

}  // namespace fencepost::locking
