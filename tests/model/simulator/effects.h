// What became of the records, whatever the output: every effect and every dead letter, by whom and
// when. Nobody in the simulated world can see it; the checks judge by it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "consumer/record/record.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

// One worker's life, and the assignment by which it came to the record.
struct By {
  int worker = 0;
  int life = 0;
  consumer::AssignmentEpoch epoch = 0;
  Nanos at{0};

  [[nodiscard]] bool SameAssignment(const By& other) const {
    return worker == other.worker && life == other.life && epoch == other.epoch;
  }
};

class Effects {
 public:
  using List = std::vector<By>;

  void Add(const std::string& id, const std::string& source, const By& by) {
    by_id_[id].push_back(by);
    by_source_[source].push_back(by);
  }
  void AddLetter(const std::string& source, const By& by) { letters_[source].push_back(by); }

  [[nodiscard]] const List& Of(const std::string& id) const { return Find(by_id_, id); }
  [[nodiscard]] const List& From(const std::string& source) const {
    return Find(by_source_, source);
  }
  [[nodiscard]] const List& Letters(const std::string& source) const {
    return Find(letters_, source);
  }
  [[nodiscard]] const std::map<std::string, List>& all() const { return by_id_; }

 private:
  static const List& Find(const std::map<std::string, List>& lists, const std::string& key) {
    static const List kNone;
    const auto found = lists.find(key);
    return found == lists.end() ? kNone : found->second;
  }

  std::map<std::string, List> by_id_;
  std::map<std::string, List> by_source_;
  std::map<std::string, List> letters_;
};

}  // namespace fencepost::simulator
