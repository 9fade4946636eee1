// The JSON lines of ./dev bench as a document: RESULTS.md, with a chart for each curve beside it,
// so that no figure is typed by hand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/bench/shared/turns.h"

namespace fencepost::bench {

// The lines of these files. Of two measurements of the same, the later one counts; a curve is the
// last file's that has points of it. Throws
// std::runtime_error with file and line where one is no line of ./dev bench.
std::vector<Json> ReadMeasurements(const std::vector<std::string>& files);

std::string Results(const std::vector<Json>& lines);
std::map<std::string, std::string> Charts(const std::vector<Json>& lines);  // SVG by file name

// Writes both into `folder`: RESULTS.md, results/*.svg. Where `sizes` names a document, its table
// of sizes too.
void WriteReport(const std::vector<std::string>& files, const std::string& folder,
                 const std::string& sizes = {});

}  // namespace fencepost::bench
