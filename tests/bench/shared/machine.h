// Where and how a measurement was made: the first line of its output.
#pragma once

namespace fencepost::bench {

// Prints {"bench":"run","command","at","version","machine":{…}} on stdout.
void TellMachine(int argc, const char* const* argv);

}  // namespace fencepost::bench
