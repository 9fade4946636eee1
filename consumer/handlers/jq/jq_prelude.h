// Definitions that precede every jq program. They take the place of those builtins of libjq
// 1.6 that end the process, hang or lose a record for what a record may hold. On one line, so that
// jq counts the lines of the program as the user does.
#pragma once

namespace fencepost::consumer {

inline constexpr char kJqPrelude[] =
    // An error that is null would be taken for `empty`.
    R"(def _error: error; )"
    R"jq(def error: if . == null then "null (not a string)" | _error else _error end; )jq"
    R"(def error(f): f | error; )"
    // Numbers that no calendar has, and a format that is no text, fail an assertion. The bounds are
    // the first and the last second of the years 0 to 9999; nan is below both.
    R"(def _moment: if . >= -62167219200 and . <= 253402300799 then . )"
    R"(else error("\(tojson) is not a time of the years 0 to 9999") end; )"
    R"(def _strftime($f): strftime($f); )"
    R"(def strftime($f): if type == "number" then _moment | gmtime else . end | _strftime($f); )"
    R"(def _strflocaltime($f): strflocaltime($f); )"
    R"(def strflocaltime($f): )"
    R"(if type != "number" then . else _moment | localtime end )"
    R"(| if $f | type == "string" then _strflocaltime($f) )"
    R"(else error("strflocaltime/1 requires a string format") end; )"
    R"(def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ"); )"
    R"(def todate: todateiso8601; )"
    // `a % b` calls _mod. The smallest integer by -1 is a SIGFPE; what jq makes of b is an integer.
    R"(def _remainder($a; $b): $a % $b; )"
    R"(def _mod(a; b): b as $b | a as $a | )"
    R"(if ($a | type) == "number" and ($b | type) == "number" and $b > -2 and $b <= -1 then 0 )"
    R"(else _remainder($a; $b) end; )"
    // The search for an empty text never ends.
    R"(def _indices($i): indices($i); )"
    R"(def indices($i): if $i == "" and type == "string" then [] else _indices($i) end; )"
    R"(def index($i): indices($i) | .[0]; )"
    R"(def rindex($i): indices($i) | .[-1:][0]; )";

}  // namespace fencepost::consumer
