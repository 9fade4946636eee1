-- Stands in front of every script that takes names (redis/wire.cc). KEYS: the sentinel, then a name
-- each. ARGV: the call's common text, by fixed positions max_skew (13 digits), ttl (13 digits, or
-- dashes where each name's ARG ends in its own); then a text a name. Formats and answers:
-- locking/redis/wire.h. A call costs little more than its commands, so loops are written out: a
-- function is made anew in every call.
local KEYS, ARGV = KEYS, ARGV
local call, pcall = redis.call, redis.pcall
local sub, byte, find, format = string.sub, string.byte, string.find, string.format

-- Whether a token (16 hex digits) is above another. Not by `<` on the texts, which goes by the
-- server's locale (strcoll), and not as one number, which holds only 53 bits.
local function above(token, other)
  local high, other_high = tonumber(sub(token, 1, 8), 16), tonumber(sub(other, 1, 8), 16)
  if high ~= other_high then
    return high > other_high
  end
  return tonumber(sub(token, 9, 16), 16) > tonumber(sub(other, 9, 16), 16)
end

-- What pcall found at a name: the first byte of a lock, 68 D, 70 F or 72 H, or nil where it is
-- something else, of any type. Other errors end the script.
local function state_of(found)
  if type(found) ~= 'string' then
    if sub(found.err, 1, 10) ~= 'WRONGTYPE ' then
      error(found)
    end
    return nil
  end
  local state, size = byte(found), #found
  local other = find(found, '[^0-9a-f]', 2)
  if state == 72 and (size == 44 or size == 60 and not find(found, '[^0-9a-f]', 45)) then
    return (not other or other > 28) and state or nil -- a nonce may look like anything
  end
  return not other and (state == 68 and size == 33 or state == 70 and size == 17) and state or nil
end

local sentinel = call('GET', KEYS[1])
if not sentinel or byte(sentinel) ~= 67 then -- C, complete
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
-- The answer begins with TIME (seconds, microseconds) and whether the node is in quarantine; the
-- answer for the name KEYS[i] is answers[i + 2].
local answers = call('TIME')
local now = answers[1] * 1000 + math.floor(answers[2] / 1000)
answers[3] = now < tonumber(sub(sentinel, 90, 102)) and 'Q' or 'A'

