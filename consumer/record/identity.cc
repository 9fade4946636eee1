#include "consumer/record/identity.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/record/dead_letter.h"
#include "locking/base/digest.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kMaxIdBytes = 512;

// Over an unambiguous encoding: each part is a flag (0 null, 1 there), its length in eight bytes,
// least significant first, and its bytes; the headers follow their number.
class ContentChecksum {
 public:
  void Add(std::optional<std::string_view> part) {
    AddNumber(part ? 1 : 0, 1);
    if (!part) return;
    AddNumber(part->size(), 8);
    Feed(part->data(), part->size());
  }
  void AddNumber(std::uint64_t number, std::size_t bytes) {
    std::array<char, 8> encoded{};
    for (char& byte : encoded) {
      byte = static_cast<char>(number & 0xff);
      number >>= 8;
    }
    Feed(encoded.data(), bytes);
  }
  [[nodiscard]] locking::ContentCrc value() const { return static_cast<locking::ContentCrc>(crc_); }

 private:
  void Feed(const char* bytes, std::size_t size) {
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes), size);
  }
  uLong crc_ = crc32_z(0, nullptr, 0);
};

locking::ContentCrc Checksum(const Record& record, bool with_timestamp) {
  ContentChecksum checksum;
  checksum.Add(record.key);
  checksum.Add(record.value);
  // What a dead letter adds is not content: a replay is the record that it was.
  const auto own = std::count_if(record.headers.begin(), record.headers.end(),
                                 [](const HeaderView& h) { return !IsDeadLetterHeader(h.name); });
  checksum.AddNumber(static_cast<std::uint64_t>(own), 8);
  for (const HeaderView& header : record.headers) {
    if (IsDeadLetterHeader(header.name)) continue;
    checksum.Add(header.name);
    checksum.Add(header.value);
  }
  if (with_timestamp) {
    checksum.AddNumber(record.timestamp ? 1 : 0, 1);
    const std::int64_t millis = record.timestamp ? record.timestamp->count() : 0;
    checksum.AddNumber(static_cast<std::uint64_t>(millis), 8);
  }
  return checksum.value();
}

bool StoredAsItIs(std::string_view id) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return id.size() <= kMaxIdBytes && std::none_of(id.begin(), id.end(), is_control) &&
         simdjson::validate_utf8(id.data(), id.size());
}

}  // namespace

std::string StoredId(std::string_view id) {
  if (StoredAsItIs(id)) return std::string(id);
  return "sha256:" + Sha256Hex(id);
}

std::string LockName(std::string_view pipeline, std::string_view stored_id) {
  std::string name;
  name.reserve(pipeline.size() + stored_id.size() + 13);
  name.append("fencepost:{").append(pipeline).append("}:").append(stored_id);
  return name;
}

Identifier::Identifier(Selector record_id, std::string cluster_id, bool accept_replay_ids)
    : selector_(std::move(record_id)),
      cluster_id_(std::move(cluster_id)),
      accept_replay_ids_(accept_replay_ids) {}

// The last header of the name counts, as with selectors.
std::optional<std::string_view> Identifier::ReplayId(const Record& record) const {
  if (!accept_replay_ids_) return std::nullopt;
  for (auto header = record.headers.rbegin(); header != record.headers.rend(); ++header) {
    if (header->name == dead_letter_header::kRecordId) return header->value;
  }
  return std::nullopt;
}

tl::expected<void, std::string> Identifier::Identify(const Record& record,
                                                     const TopicPartition& where, Identity& out) {
  out.id.clear();
  const bool by_position = selector_.kind == Selector::Kind::kPosition;
  if (const auto replayed = ReplayId(record); replayed && !replayed->empty()) {
    out.id.assign(*replayed);
  } else if (by_position) {
    fmt::format_to(std::back_inserter(out.id), "{}/{}/{}/{}", cluster_id_, where.topic,
                   where.partition, record.offset);
  } else {
    RecordContext context;
    context.record = &record;
    context.where = &where;
    evaluator_.Begin(context);
    const auto found = evaluator_.Append(selector_, out.id);
    if (!found) return tl::unexpected("no record id: " + found.error());
    if (!*found) return tl::unexpected("no record id: " + selector_.Text() + " is null");
    if (out.id.empty()) return tl::unexpected("no record id: " + selector_.Text() + " is empty");
  }
  if (!StoredAsItIs(out.id)) out.id = StoredId(out.id);
  out.crc = Checksum(record, by_position);
  return {};
}

}  // namespace fencepost::consumer
