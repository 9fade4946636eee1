// The files of the repository as text, and the rules they are held to. A rule is a function from
// one file to what is wrong with it, so that each can be shown to fail on a file made up for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fencepost::tidy {

struct SourceFile {
  std::string path;  // from the top of the repository
  std::string text;
};

// Everything but build folders and dot folders other than .ci, by path.
std::vector<SourceFile> AllFiles();

std::vector<std::string_view> Lines(std::string_view text);
bool Under(const SourceFile& file, std::string_view folder);  // "locking" or "locking/core"
bool IsSource(const SourceFile& file);                        // .h or .cc

struct Include {
  std::size_t line = 0;
  std::string target;
  bool ours = false;  // with quotes
};
std::vector<Include> Includes(const SourceFile& file);

// Each complaint is "PATH:LINE: what".
using Complaints = std::vector<std::string>;
using Rule = Complaints (*)(const SourceFile&);

std::string Complaint(const SourceFile& file, std::size_t line, std::string_view what);
// What a rule says of the whole repository.
Complaints Check(Rule rule);

}  // namespace fencepost::tidy
