#include "consumer/decode/registry/schema_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {

SchemaCache::SchemaCache(DecodeOptions options, CachePauses pauses)
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
        "the schema registry can have no schema id {}: ids go from 1 to 2147483647", id);
    return &impossible_;
  }
  const auto found = known_.find(id);
  if (found != known_.end() && (!found->second.until || Clock::now() < *found->second.until)) {
    return &found->second.known;
  }
  const std::lock_guard lock(mutex_);
  if (auto fetched = fetched_.extract(id)) {
    return &known_.insert_or_assign(id, std::move(fetched.mapped())).first->second.known;
  }
  if (wanted_.insert(id).second) wake_.notify_all();
  return nullptr;
}

std::string SchemaCache::Trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

// In turns, so that one id for which there is no answer keeps none of the others away.
void SchemaCache::Run() {
  for (std::uint32_t id = 0;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !wanted_.empty(); });
      if (stopping_) return;
      const auto next = wanted_.upper_bound(id);
      id = next == wanted_.end() ? *wanted_.begin() : *next;
    }
    Ask(id);
  }
}

void SchemaCache::Ask(std::uint32_t id) {
  for (int questions = 1;;) {
    auto schema = client_.Fetch(id);
    if (schema || schema.error().unknown) pause_ = pauses_.first;
    if (schema) {
      Tell("");
      Entry entry;
      entry.known.kind = schema->kind;
      auto decoder = MakeDecoder(*schema);
      if (decoder) {
        entry.known.decoder = std::move(*decoder);
      } else {
        entry.known.problem = fmt::format("schema {}: {}", id, decoder.error());
      }
      return Keep(id, std::move(entry));
    }
    if (!schema.error().unknown) {
      Tell(schema.error().text);
      Pause(pause_);
      pause_ = std::min(pause_ * 2, pauses_.most);
      return;
    }
    Tell("");
    if (questions++ >= pauses_.questions) {
      Entry entry;
      entry.known.problem = fmt::format("the schema registry does not know schema id {} ({})", id,
                                        schema.error().text);
      entry.until = Clock::now() + pauses_.forget;
      return Keep(id, std::move(entry));
    }
    if (!Pause(pauses_.unknown)) return;
  }
}

bool SchemaCache::Pause(std::chrono::milliseconds span) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, span, [this] { return stopping_; });
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
