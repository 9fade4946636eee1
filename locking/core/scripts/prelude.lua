-- Stands in front of every script that takes names (embed.cmake). KEYS: the sentinel, then a name
-- each. ARGV: the call's common text, by fixed positions max_skew (13 digits), ttl (13 digits, or
-- dashes where each name's ARG ends in its own); then a text a name. Formats and answers:
-- locking/redis/wire.h. A call costs little more than its commands, so loops are written out: a
-- function is made anew in every call.
local KEYS, ARGV = KEYS, ARGV
local call, sub, byte, format = redis.call, string.sub, string.byte, string.format

-- Whether a token (16 hex digits) is above another. Not by `<` on the texts, which goes by the
-- server's locale (strcoll), and not as one number, which holds only 53 bits.
local function above(token, other)
  local high, other_high = tonumber(sub(token, 1, 8), 16), tonumber(sub(other, 1, 8), 16)
  if high ~= other_high then
    return high > other_high
  end
  return tonumber(sub(token, 9, 16), 16) > tonumber(sub(other, 9, 16), 16)
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

