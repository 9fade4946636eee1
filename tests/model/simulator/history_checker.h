// Judges a history by what is promised to the outside, and by nothing else: it knows neither the
// product's code nor how the world was made. It reads the table from its beginning at each
// judgement, or row by row as they come.
//
// Records of two logs at the same place are two records. Where a person takes back all that the
// output knows of a partition, what has taken effect there may do so again.
//
//   lost       a record that the group has passed, or that is left, without effect or letter. Where
//              the output has lost an effect: only if whoever made it said so when it ended. What
//              was written in the place of a lost end: where nobody needed to notice, nor has
//   doubled    an id with two effects (kOnce), a source with two (Kafka transactions). One that the
//              output has pruned may be followed by that of a record that was sent again, or
//              behind which the group has gone back
//   forgotten  an effect, pruned before the group had passed its record
//   phantom    what was never sent, or under another id
//   order      of a chain: within an assignment, and (kOnce) whoever did it
//   past       a row that an older change has put over a newer one, as late replays would; or one
//              that has lost to an older one
//   token      of one id: an older one at the receiver after a newer one of the same life
//   early      an offset that passes a record before its effect; or that goes back. A record that
//              was deleted is passed where a person has set the offset behind it, or the group has
//              begun behind it, and by nobody else. Where the log has become another one, the group
//              may pass what it has never read, as long as nobody has set its offset; but that is
//              not left so: a person must, or it is lost
//   silent     of lost effects: whoever knew of them went on with the output without a word
//              (told: where rows are pruned, of what it was told a short while ago)
//   alarm      whoever ended with word of lost effects knew of none that was ever lost; or with
//              word of deleted records or of another log where there is nothing of the kind
//   both       an effect and a letter of one record, in one assignment (kOncePerSource: ever)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "tests/model/simulator/history.h"

namespace fencepost::simulator {

enum class Promise : std::uint8_t {
  kOnce,           // each id takes effect once: a ledger
  kAtLeastOnce,    // marks in the lock nodes: repeats need a reason, which the outside cannot see
  kOncePerSource,  // Kafka transactions
  kLettersApart,   // the same, but for dead letters, which are on another cluster
};

constexpr bool OnTransactions(Promise promise) { return promise >= Promise::kOncePerSource; }

struct Complaint {
  std::string_view what;
  std::string text;
};

class HistoryChecker {
 public:
  // `told_within`, in ns: who ends with word of lost effects speaks of those that it was told so
  // long ago at most. nullopt: of all.
  explicit HistoryChecker(Promise promise, std::optional<std::int64_t> told_within = std::nullopt)
      : promise_(promise), told_within_(told_within) {}

  void Send(Sent sent);
  std::optional<Complaint> See(Seen seen);
  // Nothing more comes.
  [[nodiscard]] std::optional<Complaint> AtTheEnd() const;
  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] Promise promise() const { return promise_; }

 private:
  using Doer = std::tuple<int, int, std::uint64_t>;  // worker, life, assignment
  using Life = std::pair<int, int>;                  // worker, life

  std::optional<Complaint> OnCall(const Seen& seen);
  std::optional<Complaint> OnEffect(const Seen& seen, const Sent& sent);
  std::optional<Complaint> OnLetter(const Seen& seen);
  std::optional<Complaint> OnOffset(const Seen& seen);
  std::optional<Complaint> CheckOrder(const Seen& seen, const Sent& sent);
  std::optional<Complaint> CheckRow(const Seen& seen, const Sent& sent);
  std::optional<Complaint> OnUsed(const Seen& seen) const;
  std::optional<Complaint> OnStopped(const Seen& seen);
  void OnEffectLost(const Seen& seen);
  std::optional<Complaint> OnPruned(const Seen& seen);
  void OnGoneBack(const Seen& seen);
  void GiveUp(const Seen& seen);
  void OnGone(const Seen& seen);
  void OnAnotherLog(const Seen& seen);
  void OnForgotten(const Seen& seen);
  std::optional<Complaint> OnToldOfLog(const Seen& seen);
  [[nodiscard]] bool MayComeAgain(const Seen& seen) const;
  [[nodiscard]] bool Complete(const Sent& sent) const;
  [[nodiscard]] bool MayBeLost(const Sent& sent) const;

  const Promise promise_;
  const std::optional<std::int64_t> told_within_;
  History history_;
  // What the table says, looked up.
  std::map<std::string, std::size_t, std::less<>> by_source_;         // place in history_.sent
  std::map<std::string, int, std::less<>> effects_by_id_;             // that the output knows of
  std::map<std::string, std::set<std::string>, std::less<>> pruned_;  // sources, by id
  std::set<std::string, std::less<>> sent_back_;  // sources that the group has gone back behind
  std::map<int, std::int64_t> farthest_;          // that the offsets have been, by partition
  std::set<std::string, std::less<>> gone_;       // sources
  std::set<std::string, std::less<>> replaced_;   // sources
  std::set<std::string, std::less<>> no_output_, no_output_ids_;  // sources, and their ids
  std::map<int, int> log_;                       // the one there is now, by partition
  std::set<int> changed_;                        // partitions of which records are gone
  std::map<int, std::int64_t> unseen_;           // up to where nobody needs to notice that
  std::set<int> in_doubt_;                       // … whose log is another one, and nobody has
                                                 // set the group's offset since
  std::set<std::string, std::less<>> given_up_;  // of what is gone: it is known to somebody
  std::map<std::string, std::set<Doer>, std::less<>> effects_;
  std::map<std::string, std::set<Doer>, std::less<>> letters_;
  std::set<std::string, std::less<>> passed_ids_;  // … and of what was given up
  std::map<std::pair<Doer, std::string>, std::int64_t> last_of_assignment_;  // by chain
  std::map<std::string, std::int64_t, std::less<>> last_of_chain_;
  std::map<std::tuple<int, int, std::string>, std::uint64_t> tokens_;  // worker, life, id
  // By row, what was put into it: when it was made, by source.
  std::map<std::string, std::map<std::string, std::int64_t>, std::less<>> rows_;
  std::map<int, std::int64_t> offsets_;                                // by partition
  std::map<std::pair<Life, std::string>, std::int64_t> acknowledged_;  // with id; when last
  std::set<std::pair<Life, std::string>> buried_;  // ids of its own dead letters
  // By id, and not done again: whether somebody who knew has ended with word of it.
  std::map<std::string, bool, std::less<>> lost_;
  std::set<std::string, std::less<>> ever_lost_;  // ids
};

}  // namespace fencepost::simulator
