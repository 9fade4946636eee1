// Texts that are stored and read back: what is taken is, to the letter, what would be written.
#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/outputs/ledger/position_ranges.h"
#include "consumer/record/position_id.h"
#include "locking/core/store/sentinel.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

void CheckPositionId(std::string_view text) {
  const auto position = consumer::ParsePositionId(text);
  if (!position) return;
  FENCEPOST_CHECK(FormatPositionId(*position) == text, Shown(text));
  for (const std::int64_t size : {1L, 2L, 1000L, 1L << 40}) {
    const std::string name = consumer::LockedId(text, size);
    // No block is taken for the position of a record.
    FENCEPOST_CHECK(size == 1 ? name == text : !consumer::ParsePositionId(name), Shown(text));
  }
}

void CheckRanges(std::string_view text) {
  const auto ranges = consumer::PositionRanges::Parse(text);
  if (!ranges) return;
  FENCEPOST_CHECK(ranges->Text() == text, Shown(text));
  FENCEPOST_CHECK(ranges->empty() == (ranges->CountOffsets() == 0), Shown(text));
  FENCEPOST_CHECK(ranges->Minus(*ranges).empty(), Shown(text));
  consumer::PositionRanges twice = *ranges;
  twice.Add(*ranges);
  FENCEPOST_CHECK(twice == *ranges, Shown(text));
  if (ranges->empty()) return;
  FENCEPOST_CHECK(ranges->Contains(ranges->first()) && !ranges->Contains(ranges->end()),
                  Shown(text));
}

void CheckMetadata(std::string_view text) {
  // Offsets that the metadata may be committed with: one that it names, and another.
  constexpr consumer::Offset kNext = 1234;
  for (const consumer::Offset next : {kNext, kNext + 1}) {
    const consumer::CommitMetadata kNone;
    const auto read = consumer::ParseMetadata(text, next);
    if (read == kNone) continue;
    const std::string again = MetadataText(read, next);
    FENCEPOST_CHECK(again.size() < 3000, again);
    FENCEPOST_CHECK(consumer::ParseMetadata(again, next) == read, Shown(text));
    FENCEPOST_CHECK(consumer::ParseMetadata(again, next + 1) == kNone, Shown(text));
  }
}

}  // namespace

void OneInput(std::string_view input) {
  if (const auto sentinel = locking::Sentinel::Decode(input)) {
    FENCEPOST_CHECK(sentinel->Encode() == input, Shown(input));
  }
  CheckPositionId(input);
  CheckRanges(input);
  CheckMetadata(input);
}

}  // namespace fencepost::fuzz
