// Which table or topic a record chooses by a part of it. Values; Choose is const and may run on any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

// All that may be chosen, each once: only what the file names.
std::vector<std::string> NamesOf(const Route& route);
// Where there is no route, that one name.
std::vector<std::string> NamesOf(const std::string& name, const std::optional<Route>& route);

// All topics of the output's records, each once.
std::vector<std::string> TopicsOf(const KafkaOutputOptions& output);

// One of NamesOf; nullopt: none (`otherwise: skip`). The evaluator has begun the record; `buffer`
// is overwritten. Error: why the record is bad, one line without anything of it.
tl::expected<std::optional<std::string_view>, std::string> Choose(const Route& route,
                                                                  Evaluator& evaluator,
                                                                  std::string& buffer);

}  // namespace fencepost::consumer
