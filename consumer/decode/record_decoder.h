// Decodes records on their way from Kafka. What the source needs of it: it may not know a schema
// yet, and never blocks. One thread, the source's.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "consumer/record/record.h"

namespace fencepost::consumer {

class RecordDecoder {
 public:
  virtual ~RecordDecoder() = default;
  // Decodes these in place, from the first one on, and says how many are done. A record that cannot
  // be decoded is done: `problem` says why. Fewer than all: the others would make too much
  // at a time, or the next one's schema has been asked for (none is done, when called again with
  // them). They come again, in the same order.
  virtual std::size_t Decode(std::span<Record> records) = 0;
  // Why the registry gives no schemas, one line. Empty: it does, or was not asked.
  [[nodiscard]] virtual std::string Trouble() const = 0;
};

}  // namespace fencepost::consumer
