// What is given beside a pipeline's file, put into its tree: sections that it shares with others,
// and single values of the command line. Trees in, one tree out; any thread.
#pragma once

#include <string>
#include <string_view>

#include "config/read/tree.h"
#include "config/text/finding.h"

namespace fencepost::config {

// Puts what `shared` has below what `root` has, map by map. A key that both give is an error: lists
// and single values are not merged.
void MergeBelow(Node& root, Node shared, Findings& findings);

// "--set lock.ttl" of the setting lock.ttl=5s: without its value, which may be secret.
std::string SettingName(std::string_view setting);

// Puts the value of a setting, KEY=VALUE, in the place of what `root` says at the key. A name
// within a map of the user's own (columns, headers) is all that follows the map. The value is a
// text, word by word; where the key takes a list or a map, [ or { begins one as YAML has it.
// Errors: a setting without =, a key within what has none, one that was set before. Unknown keys
// stay in the tree: who reads it tells them.
void Set(Node& root, std::string_view setting, int source, Findings& findings);

}  // namespace fencepost::config
