# Definitions that precede every jq program. They take the place of those builtins of libjq 1.6 that
# end the process, hang or lose a record for what a record may hold. They become one line, so a
# comment has a line of its own.

# An error that is null would be taken for `empty`.
def _error: error;
def error: if . == null then "null (not a string)" | _error else _error end;
def error(f): f | error;
# Numbers that no calendar has, and a format that is no text, fail an assertion. The bounds are
# the first and the last second of the years 0 to 9999; nan is below both.
def _moment: if . >= -62167219200 and . <= 253402300799 then .
  else error("\(tojson) is not a time of the years 0 to 9999") end;
def _strftime($f): strftime($f);
def strftime($f): if type == "number" then _moment | gmtime else . end | _strftime($f);
def _strflocaltime($f): strflocaltime($f);
def strflocaltime($f):
  if type != "number" then . else _moment | localtime end
  | if $f | type == "string" then _strflocaltime($f)
  else error("strflocaltime/1 requires a string format") end;
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def todate: todateiso8601;
# `a % b` calls _mod. The smallest integer by -1 is a SIGFPE; what jq makes of b is an integer.
def _remainder($a; $b): $a % $b;
def _mod(a; b): b as $b | a as $a |
  if ($a | type) == "number" and ($b | type) == "number" and $b > -2 and $b <= -1 then 0
  else _remainder($a; $b) end;
# It would print the value to the worker's own stderr.
def stderr: .;
# The search for an empty text never ends.
def _indices($i): indices($i);
def indices($i): if $i == "" and type == "string" then [] else _indices($i) end;
def index($i): indices($i) | .[0];
def rindex($i): indices($i) | .[-1:][0];
