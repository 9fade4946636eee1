// What a pipeline file may say: one row a key, from which the options that a worker runs by, the
// checks, REFERENCE.md, the JSON Schema and the reload at SIGHUP are made. A key is added here
// first (schema.cc, schema_cluster.cc, schema_formats.cc, schema_effects.cc, schema_tests.cc).
// Values, made once; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema/target.h"

namespace fencepost::config {

// The least and the most that may be given, as they would be written.
struct Limits {
  std::string_view min, max;
};

// What a running worker does with another value at SIGHUP.
enum class Reload : std::uint8_t {
  kRestart,       // it needs a restart
  kLive,          // it is taken over
  kLiveOverHttp,  // while the handler is handler.http: others have as many calls as at the start
};

struct Key {
  std::string path;  // dotted, as in lock.redis.nodes
  Target to = {};  // where its value goes; none: keys of `tests:`, sections, and what has one value
  Reload reload = Reload::kRestart;
  bool of_process = false;     // of the files of a process the first one's counts
  Type type = Type::kText;     // or, where that is the default: a section, or as its target says
  std::string_view help = "";  // for people; one line of Markdown
  std::string default_value = "";              // as it would be written; or as its target says
  std::string_view default_words = "";         // where the default is not a value
  std::vector<std::string_view> choices = {};  // or as its target says
  std::optional<Limits> limits = {};           // of numbers, durations, sizes
  // Of a text, or each text of a list, or each name of a map: empty, or a predicate ("is not …").
  // Where there is none, texts and names are not empty.
  std::string (*check)(std::string_view text) = nullptr;
  // Of a section: its keys that have to be given, in one of these ways.
  std::vector<std::vector<std::string_view>> ways = {};
  bool required = false;          // where its section is given
  bool one_child = false;         // of a section: exactly one of its keys is given
  bool may_be_empty = false;      // lists and maps that otherwise may not
  bool secret = false;            // its value is never printed
  bool empty_text = false;        // of a text: it may be empty
  std::string_view or_word = {};  // for a duration without an end (kForever), or for a selector
  bool or_selectors = false;      // a list of selectors may be given instead
  bool or_texts = false;          // a list of texts may be given instead
  bool or_section = false;        // of a choice: a map with one of its keys may be given instead
  bool or_by_table = false;       // of rows: a map of tables to such lists may be given instead
  bool by_commas = false;         // of a list: a text may be several, with commas between
  bool pairs = false;             // of a map of texts: NAME: {WORD: TEXT} is the text WORD:TEXT
  bool lines = false;             // of a text: what ${…} puts in may have several lines
  bool basic = false;             // a first pipeline may need it: the reference shows it first
  std::string same_as = {};       // the key that means the same, if it was listed before
};

// The rows of one section. `reach` finds its options (Reach); none: its values go elsewhere.
template <typename Options = std::nullptr_t>
class KeysOf {
 public:
  explicit KeysOf(std::string section, Options reach = {})
      : section_(std::move(section)), reach_(std::move(reach)) {}

  // The key `name` of the section, which may have dots; "" is the section. `more`: what else there
  // is to say of it.
  Key operator()(std::string_view name, Target to, std::string_view help, Key more = {}) const {
    more.path = section_.empty() || name.empty() ? section_ + std::string(name)
                                                 : section_ + "." + std::string(name);
    more.to = std::move(to);
    more.help = help;
    return more;
  }
  Key operator()(std::string_view name, std::string_view help, Key more = {}) const {
    return (*this)(name, Target(), help, std::move(more));
  }
  // Its value goes to a member of the section's options.
  template <typename Of, typename Value>
  Key operator()(std::string_view name, Value Of::*member, std::string_view help,
                 Key more = {}) const {
    return (*this)(name, At(reach_, member), help, std::move(more));
  }

 private:
  const std::string section_;
  const Options reach_;
};

std::span<const Key> Schema();
const Key* FindKey(std::string_view path);
// The last names of the keys right under a section ("" is the file).
std::vector<std::string_view> ChildrenOf(std::string_view section);
// Whether the key is of `tests:`, whose paths leave out the places in lists: tests.given.key.
bool InTests(std::string_view path);
std::string_view ParentOf(std::string_view path);
std::string_view NameOf(std::string_view path);

// The rows, part by part.
std::vector<Key> KafkaClusterKeys();   // kafka: brokers, the first; tls, sasl
std::vector<Key> OutputClusterKeys();  // of output.kafka
std::vector<Key> LetterClusterKeys();  // of dead_letter
std::vector<Key> DecodeKeys();         // kafka.decode
std::vector<Key> HandlerKeys();
std::vector<Key> HttpBatchKeys();
std::vector<Key> ExecBatchKeys();
std::vector<Key> OutputKeys();
std::vector<Key> KafkaOutputKeys();
std::vector<Key> TestKeys();
void Append(std::vector<Key>& keys, std::vector<Key> more);

}  // namespace fencepost::config
