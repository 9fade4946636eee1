// Batches on their way through the decoder. One that needs a schema that is not known yet, or whose
// records become more than there is room for, waits here, with all that came behind it; what is in
// front goes on.
#include <algorithm>
#include <iterator>
#include <utility>

#include "consumer/kafka/source/source_impl.h"

namespace fencepost::consumer {

void KafkaSource::Impl::DeliverHeld() {
  while (!held.empty()) {
    IntakeBatch& batch = held.front();
    const bool decodes = extras.decoder != nullptr && !batch.records.empty();
    if (decodes && sink->RoomBytes() == 0) break;  // what was made before is still on its way
    const std::size_t done = decodes ? extras.decoder->Decode(batch.records) : batch.records.size();
    if (done < batch.records.size()) {
      if (done == 0) break;
      const auto next = batch.records.begin() + static_cast<std::ptrdiff_t>(done);
      IntakeBatch first;
      first.records.assign(std::make_move_iterator(batch.records.begin()),
                           std::make_move_iterator(next));
      batch.records.erase(batch.records.begin(), next);
      Tell(std::move(first));
      continue;
    }
    IntakeBatch whole = std::move(batch);
    held.pop_front();
    Tell(std::move(whole));
  }
  TellDecoder();
}

void KafkaSource::Impl::TellDecoder() {
  if (extras.decoder == nullptr) return;
  const std::string trouble = held.empty() ? "" : extras.decoder->Trouble();
  const bool told = health.Trouble(Meaning::kNoSchemas);
  if (trouble.empty()) {
    if (!told) return;
    health.ClearTrouble(Meaning::kNoSchemas);
    observer->OnNote(locking::Severity::kInfo, "schema_registry_available",
                     "the schema registry gives schemas again");
    return;
  }
  const std::string reason = "the schema registry is unavailable: " + trouble;
  if (!told) observer->OnNote(locking::Severity::kWarn, "schema_registry_unavailable", reason);
  health.SetTrouble(Meaning::kNoSchemas, "", reason);
}

}  // namespace fencepost::consumer
