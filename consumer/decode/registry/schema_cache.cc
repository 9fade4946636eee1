#include "consumer/decode/registry/schema_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {

SchemaCache::SchemaCache(RegistryOptions options, CachePauses pauses)
    : pauses_(pauses), client_(std::move(options)), thread_([this] { Run(); }) {}

SchemaCache::~SchemaCache() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  client_.Cancel();
  wake_.notify_all();
  thread_.join();
}

const SchemaCache::Known* SchemaCache::Find(std::uint32_t id) {
  if (id == 0 || id > std::numeric_limits<std::int32_t>::max()) {
    impossible_.problem = fmt::format(
        "the schema registry can have no schema id {}: ids go from 1 to 2147483647{}", id,
        id == 0 ? ", in 4 bytes (an id of 8, as Apicurio may write it, begins with 0: let its "
                  "serializer write 4)"
                : "");
    return &impossible_;
  }
  const auto found = known_.find(id);
  if (found != known_.end() && (!found->second.until || Clock::now() < *found->second.until)) {
    return &found->second.known;
  }
  const std::lock_guard lock(mutex_);
  if (auto fetched = fetched_.extract(id)) {
    const auto until = fetched.mapped().until;
    if (!until || Clock::now() < *until) {
      return &known_.insert_or_assign(id, std::move(fetched.mapped())).first->second.known;
    }
  }
  const auto [wanted, is_new] = wanted_.try_emplace(id);
  wanted->second.asked = Clock::now();
  if (is_new) wake_.notify_all();
  return nullptr;
}

std::string SchemaCache::Trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void SchemaCache::Run() {
  for (std::optional<std::uint32_t> id = 0; (id = NextId(*id));) Ask(*id);
}

// In turns, so that one id for which there is no answer keeps none of the others away.
std::optional<std::uint32_t> SchemaCache::NextId(std::uint32_t last) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = Clock::now();
    std::erase_if(wanted_, [&](const auto& one) { return now - one.second.asked > pauses_.drop; });
    auto soonest = now + pauses_.most;
    std::optional<std::uint32_t> first;
    for (const auto& [id, wanted] : wanted_) {
      soonest = std::min(soonest, wanted.next);
      if (wanted.next > now) continue;
      if (id > last) return id;
      if (!first) first = id;
    }
    if (first) return first;
    if (wanted_.empty()) trouble_.clear();
    wake_.wait_until(lock, soonest);
  }
  return std::nullopt;
}

void SchemaCache::Ask(std::uint32_t id) {
  auto schema = client_.Fetch(id);
  // Who has given other schemas from there is a registry, whatever its words.
  const bool unknown =
      !schema && (schema.error().unknown || (schema.error().page_missing && newest_ != 0));
  if (!schema && !unknown) {
    Tell(schema.error().text);
    Pause(pause_);
    pause_ = std::min(pause_ * 2, pauses_.most);
    return;
  }
  pause_ = pauses_.first;
  Tell("");
  if (!schema) return OnUnknown(id, schema.error().text);
  newest_ = std::max(newest_, id);
  Entry entry;
  entry.known.kind = schema->kind;
  auto decoder = MakeDecoder(*schema);
  if (decoder) {
    entry.known.decoder = std::move(*decoder);
  } else {
    entry.known.problem = fmt::format("schema {}: {}", id, decoder.error());
  }
  Keep(id, std::move(entry));
}

void SchemaCache::OnUnknown(std::uint32_t id, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    const auto wanted = wanted_.find(id);
    if (wanted == wanted_.end()) return;
    const auto now = Clock::now();
    const bool believed = id < newest_ || now < believe_until_;
    wanted->second.next = now + pauses_.unknown;
    if (++wanted->second.questions < pauses_.questions && !believed) return;
    if (id > newest_) believe_until_ = now + pauses_.believe;
  }
  Entry entry;
  entry.known.problem = fmt::format("the schema registry does not know schema id {} ({})", id, why);
  entry.until = Clock::now() + pauses_.forget;
  Keep(id, std::move(entry));
}

void SchemaCache::Pause(std::chrono::milliseconds span) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, span, [this] { return stopping_; });
}

void SchemaCache::Keep(std::uint32_t id, Entry entry) {
  const std::lock_guard lock(mutex_);
  fetched_.insert_or_assign(id, std::move(entry));
  wanted_.erase(id);
}

void SchemaCache::Tell(std::string trouble) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(trouble);
}

}  // namespace fencepost::consumer
