// How a request becomes transactions, and which of its records a failure is about: by experiment,
// not by a list of error codes. Sans-IO: the owner of the output carries out one step after the
// other and tells what came of it; waits are told, not waited. One thread.
//
//   retry.Begin(batch, answered, items);
//   for (step = retry.Next(); step.kind != kDone; step = retry.Next())
//     kWait:  wait, or give the batch up (shutdown)
//     kWrite: WriteStep(output, request, step), then retry.OnWritten(…) or retry.OnFailed(…)
//     and retry.Expire() before Next where the batch's time is over (WriteBatch::until)
//   retry.Take();
//
// What holds:
// - Of a chain nothing is written behind an item that was not: neither in its own batch nor in one
//   that was filled before the flow knew (`answered`). A chain's order is that of its offsets.
// - A part that is refused is written once more as one transaction that finds all who are refused
//   alone and commits the others (WriteRequest::apart). Where each of the last batches had bad
//   records, the next is written so at once. Where it is refused again as a whole, it is halved.
// - Nobody is bad for a kind of refusal before the catalog was read again for it, on a new
//   connection: once a minute, where that found a bad record.
// - A record that is refused alone (or too slow, twice) is bad if the table takes others: one was
//   committed in the same transaction or afterwards, or few were refused since the last that was
//   (RunOfRefusals). Of more, a few of the others are tried at once. If one is taken, the refused
//   are tried again, and who is refused again is bad. If none is, the table refuses everything, and
//   nobody is bad: after a wait all are handed back (kNotWritten), to come again together with
//   newer ones.
// - A part that takes too long is halved, and the limit is remembered; it grows slowly again.
// - What another session locks is halved too, so that one locked row does not hold up the others;
//   a locked record is handed back, and tried by itself from then on.
// - Records whose log cannot be compared yet (OutputError::later) are handed back at once, and the
//   others are written.
// - An unknown COMMIT is resolved by writing the same again, and by nothing else; what is handed
//   back without an outcome is looked for when it comes again. Of a record that is then not
//   written it is told that it is in doubt (WriteOutcome::in_doubt).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/flow/ports/run_of_refusals.h"
#include "consumer/outputs/output.h"

namespace fencepost::consumer {

class WriteRetry {
 public:
  using Wait = std::chrono::milliseconds;

  struct Step {
    enum class Kind : std::uint8_t { kWrite, kWait, kDone };
    Kind kind = Kind::kDone;
    std::vector<std::size_t> items;  // kWrite: indexes in the request, in its order
    bool reconnect = false;          // kWrite: Prepare first, on a new connection
    bool apart = false;              // kWrite: as WriteRequest::apart
    bool table_takes = false;        // kWrite: as WriteRequest::table_takes
    Wait wait{0};                    // kWait
    // kWait: of nothing but records whose logs cannot be compared yet, so it ends where there is
    // other work.
    bool left_out = false;
    // kWait, kDone: the output as a whole takes nothing, and why, in one line that holds nothing of
    // any record; else empty.
    std::string reason;
  };

  // `max_records`: the output's. `most_in_a_row`: of RunOfRefusals.
  explicit WriteRetry(std::size_t max_records, std::size_t most_in_a_row = kMostInARow);

  // `items` stay good until Take. `answered`: the newest batch whose outcomes were known when this
  // one was filled. Batches come in the order of their numbers.
  void Begin(std::uint64_t batch, std::uint64_t answered, const std::vector<WriteItem>& items,
             locking::Instant now);
  Step Next();
  // Nothing more is written: what has no outcome is handed back.
  void Expire();
  void OnWritten(std::vector<WriteOutcome> outcomes);  // of the step's items
  void OnFailed(const OutputError& error);             // not fatal ones
  std::vector<WriteOutcome> Take();                    // after kDone; one an item

  [[nodiscard]] std::size_t limit() const { return limit_; }  // records of a transaction

 private:
  // Suspect: refused alone. Recheck: and then another was taken; it is tried once more.
  enum class State : std::uint8_t { kOpen, kSuspect, kRecheck, kDecided };
  using Items = std::vector<std::size_t>;
  // Of a chain: the first that was not written in a batch. Nothing behind it is, in no batch that
  // was filled before this one was answered; what is before it may well be.
  struct Held {
    std::uint64_t batch = 0;
    Offset offset = 0;
  };

  [[nodiscard]] bool whole() const { return max_records_ == 0; }
  [[nodiscard]] const WriteItem& At(std::size_t item) const { return (*items_)[item]; }
  [[nodiscard]] bool WithinMaxConsecutive() const;
  [[nodiscard]] bool Writable(std::size_t item);
  bool NextPart();
  void Decide(std::size_t item, WriteOutcome outcome);
  void HoldBehind(std::size_t item);
  void HandBack(std::size_t item);
  void LeaveOut(const std::vector<std::size_t>& places);
  void OnAlone(std::size_t item, WriteOutcome outcome);
  void OnTableAccepts();
  void OnGuilty(const std::string& kind);
  void RereadCatalog();
  [[nodiscard]] bool MustRereadCatalog(const std::string& kind) const;
  void Split();
  void OnRefused(const OutputError& error);
  void OnLocked(const OutputError& error);
  void OnTooSlow(const OutputError& error);
  void OnClientTimeout();
  void HalveLimit();
  void GrowIfFull();
  void Sample(std::size_t most);
  void Finish();
  void GiveUp(Error error);
  void WaitForService();

  const std::size_t max_records_;

  // Across batches.
  std::size_t limit_;
  std::size_t full_in_row_ = 0;  // transactions at the limit that succeeded
  std::size_t grow_after_;
  bool grown_ = false;          // since the last that was too slow
  std::uint8_t apart_for_ = 0;  // parts: one before had bad records, so they are written apart
  RunOfRefusals run_;           // called bad since the table was last seen to take a record
  std::size_t turn_ = 0;        // so that other samples are picked each time
  Wait pause_;                  // before a batch is handed back of which nothing was taken
  std::map<std::uint64_t, std::vector<Held>> held_;  // by chain; one a batch
  std::set<std::string, std::less<>> alone_;         // ids that were locked: tried by themselves
  // By kind of refusal: the catalog was read again for it, and it was a record's after all.
  std::map<std::string, locking::Instant> reread_;

  // Of this batch.
  std::uint64_t batch_ = 0;
  const std::vector<WriteItem>* items_ = nullptr;
  std::vector<State> states_;
  std::vector<WriteOutcome> outcomes_;
  std::vector<std::uint8_t> tries_;     // that were too slow, alone
  std::vector<std::uint8_t> in_doubt_;  // part of a transaction that was not answered
  std::deque<Items> work_;     // the parts that are still to be written, the next one first
  std::deque<Items> put_off_;  // while samples are written
  Items current_;              // the part of the step
  Items suspects_;             // since a record was last taken
  std::size_t slow_suspects_ = 0;
  std::size_t conflicts_ = 0;       // deadlocks in a row
  std::size_t locked_in_row_ = 0;   // parts, since one was written
  locking::Instant now_{};          // as it began
  std::string reread_for_;          // the kind of refusal of a part as a whole
  bool catalog_reread_ = false;     // the catalog, after a refusal
  bool reconnect_ = false;          // the next step
  bool apart_ = false;              // the first part of work_ is written so
  bool something_written_ = false;  // of this batch
  bool handed_back_ = false;        // something, and not for its chain's sake
  bool left_out_ = false;           // something whose log cannot be compared yet
  bool finished_ = false;
  bool took_rows_ = false;  // the table, as it refused what is written once more
  Wait backoff_;
  Wait wait_{0};  // to be told next
  std::string trouble_;
  OutputError refusal_;  // the last
};

// Carries out a kWrite step.
tl::expected<std::vector<WriteOutcome>, OutputError> WriteStep(Output& output,
                                                               const WriteRequest& request,
                                                               const WriteRetry::Step& step);
// All steps of a request, without waiting: for tests and `fencepost test`. An output that is not
// there is an error at once.
tl::expected<std::vector<WriteOutcome>, OutputError> WriteAtOnce(Output& output, WriteRetry& retry,
                                                                 const WriteRequest& request,
                                                                 std::uint64_t batch = 1,
                                                                 std::uint64_t answered = 0);

}  // namespace fencepost::consumer
