#include "consumer/record/identity.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/record/dead_letter.h"
#include "consumer/record/position_id.h"
#include "locking/base/digest.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kMaxIdBytes = 512;
constexpr std::string_view kDigest = "sha256:";

bool StoredAsItIs(std::string_view id) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return id.size() <= kMaxIdBytes && std::none_of(id.begin(), id.end(), is_control) &&
         simdjson::validate_utf8(id.data(), id.size());
}

}  // namespace

std::string StoredId(std::string_view id) {
  if (StoredAsItIs(id)) return std::string(id);
  return std::string(kDigest).append(Sha256Hex(id));
}

std::string LockName(std::string_view pipeline, std::string_view stored_id) {
  std::string name;
  name.reserve(pipeline.size() + stored_id.size() + 13);
  name.append("fencepost:{").append(pipeline).append("}:").append(stored_id);
  return name;
}

Identifier::Identifier(IdentityRule rule, std::string cluster_id)
    : rule_(std::move(rule)),
      content_(rule_.ByPosition() ? ContentRule{.kind = ContentRule::Kind::kRecord, .selectors = {}}
                                  : rule_.content),
      cluster_id_(std::move(cluster_id)) {}

std::optional<std::string_view> Identifier::ReplayId(const Record& record) const {
  if (!rule_.accept_replay_ids) return std::nullopt;
  return FindHeader(record, dead_letter_header::kRecordId);
}

void Identifier::AppendPosition(const TopicPartition& where, Offset offset, std::string& id) {
  if (prefix_.empty() || prefix_of_ != where) {
    prefix_.clear();
    AppendPositionId({cluster_id_, where.topic, where.partition, 0}, prefix_);
    prefix_.pop_back();
    prefix_of_ = where;
  }
  const fmt::format_int digits(offset);
  id.append(prefix_).append(digits.data(), digits.size());
}

tl::expected<void, std::string> Identifier::AppendParts(std::string& id) {
  for (const Selector& selector : rule_.record_id) {
    part_.clear();
    const auto found = evaluator_.Append(selector, part_);
    if (!found) return tl::unexpected("no record id: " + found.error());
    if (!*found) return tl::unexpected("no record id: " + selector.Text() + " is null");
    if (part_.empty()) return tl::unexpected("no record id: " + selector.Text() + " is empty");
    if (rule_.record_id.size() == 1) {
      id.append(part_);
      break;
    }
    if (&selector != &rule_.record_id.front()) id.push_back('/');
    AppendPointerToken(part_, id);
  }
  return {};
}

// Of a replay, whose header has the stored form: its own parts, where they have that digest.
void Identifier::FindWhole(Identity& out) {
  if (rule_.ByPosition() || !out.id.starts_with(kDigest)) return;
  if (!AppendParts(out.whole) || StoredAsItIs(out.whole) || StoredId(out.whole) != out.id) {
    out.whole.clear();
  }
}

tl::expected<void, std::string> Identifier::Identify(const Record& record,
                                                     const TopicPartition& where, Identity& out) {
  out.id.clear();
  out.whole.clear();
  out.in_place = false;
  out.origin.reset();
  if (!record.problem.empty()) return tl::unexpected(record.problem);
  const auto replayed = ReplayId(record);
  const bool replay = replayed && !replayed->empty();
  if (replay && !Planted("replay_is_of_its_own_time")) out.origin = OriginOf(record, where.topic);
  RecordContext context;
  context.record = &record;
  context.where = &where;
  context.origin = out.origin ? &*out.origin : nullptr;
  evaluator_.Begin(context);
  if (replay) {
    if (rule_.ByPosition() && !ParsePositionId(*replayed)) {
      return tl::unexpected(
          fmt::format("no record id: the header {} is no position "
                      "(CLUSTERID/topic/partition/offset)",
                      dead_letter_header::kRecordId));
    }
    out.id.assign(*replayed);
    FindWhole(out);
  } else if (rule_.ByPosition()) {
    AppendPosition(where, record.offset, out.id);
    out.in_place = true;
  } else if (const auto found = AppendParts(out.id); !found) {
    return found;
  }
  if (!StoredAsItIs(out.id)) {
    out.whole.swap(out.id);
    out.id = StoredId(out.whole);
  }
  const auto content = content_.Of(record, context.origin, evaluator_);
  if (!content) return tl::unexpected("no content to compare (id_content): " + content.error());
  out.crc = *content;
  return {};
}

}  // namespace fencepost::consumer
