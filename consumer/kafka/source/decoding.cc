// Batches on their way through the decoder. One that needs a schema that is not known yet waits
// here, with all that came behind it; what is in front of the record that needs it goes on.
#include <algorithm>
#include <iterator>
#include <utility>

#include "consumer/kafka/source/source_impl.h"

namespace fencepost::consumer {

void KafkaSource::Impl::DeliverHeld() {
  while (!held.empty()) {
    IntakeBatch& batch = held.front();
    const std::size_t done =
        extras.decoder == nullptr ? batch.records.size() : extras.decoder->Decode(batch.records);
    if (done < batch.records.size()) {
      if (done > 0) {
        const auto next = batch.records.begin() + static_cast<std::ptrdiff_t>(done);
        IntakeBatch first;
        first.records.assign(std::make_move_iterator(batch.records.begin()),
                             std::make_move_iterator(next));
        batch.records.erase(batch.records.begin(), next);
        Tell(std::move(first));
      }
      break;
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
