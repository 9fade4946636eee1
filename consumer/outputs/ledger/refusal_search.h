// Which records of a transaction the database refuses. The transaction is written in parts, each
// behind a savepoint; a part that is refused is rolled back to it and written once more in smaller
// parts, down to single records. Sans-IO; one thread.
//
//   while (!(parts = search.Next()).empty())
//     for each part, in this order: write it, then search.OnTaken(place) or search.OnRefused(place)
//
// What holds:
// - A record is refused only alone.
// - The records of a chain are written in their order, and none behind one that was refused: it is
//   left.
// - No part of what Next says depends on another part of it, so all may be sent in one go.
// - Where nothing is taken, it ends soon after kMostRefused records: the rest is left. Where others
//   were taken just before (Start::taken), nothing is left for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <set>
#include <vector>

namespace fencepost::consumer {

class RefusalSearch {
 public:
  using Records = std::vector<std::size_t>;
  static constexpr std::size_t kMostRefused = 16;
  // A chain whose records keep their order, and nothing more: none waits behind a refused one.
  static constexpr std::uint64_t kInOrder = std::numeric_limits<std::uint64_t>::max();

  struct Start {
    bool refused = true;       // together
    Records suspects{};        // as of OnRefused
    std::size_t expected = 0;  // that will be refused
    bool taken = false;        // the table takes others
  };
  // `records`: those to write, in the order of the request; a part is written in the order of their
  // numbers, mostly. `chains`: by record; 0: none.
  RefusalSearch(const Records& records, std::vector<std::uint64_t> chains, const Start& start);

  std::vector<Records> Next();
  // Of the part at this place.
  void OnTaken(std::size_t place);
  // `suspects`: those of its records that it may be about; a guess, which only saves parts.
  void OnRefused(std::size_t place, const Records& suspects = {});

  // Once Next is empty.
  [[nodiscard]] const Records& left() const { return left_; }

 private:
  struct Part {
    Records records;
    bool rest = false;  // beside suspects: it is mostly taken
  };
  using Parts = std::list<Part>;
  void Split(Parts::iterator at, const Records& suspects);
  void Insert(Parts::iterator before, const Records& records, std::size_t parts, bool rest);
  void JoinRests();

  const std::vector<std::uint64_t> chains_;
  Parts parts_;  // what is not known yet; those of a chain in its order
  std::vector<Parts::iterator> sent_;
  std::set<std::uint64_t> held_;
  std::size_t untaken_;  // parts of the next go, while nothing was taken
  std::size_t refused_ = 0;
  bool taken_;  // any
  Records left_;
};

}  // namespace fencepost::consumer
