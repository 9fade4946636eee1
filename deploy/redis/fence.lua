-- Writes a value only under a fencing token that is at least the highest seen for it.
--
--   EVAL SCRIPT 2 VALUE-KEY FENCE-KEY TOKEN VALUE FENCE-TTL-MS [VALUE-TTL-MS]
--
-- TOKEN         decimal digits, above 0 and below 2^63, as fencepost prints it
-- FENCE-TTL-MS  how long the fence remembers after the last write; 0: for ever. A fence that has
--               expired has forgotten: the frozen holder's write then passes. Longer than anybody
--               can be frozen, so hours or days, not the ttl of the lock.
-- VALUE-TTL-MS  0 or absent: the value does not expire
--
-- Answers OK, or an error that begins with FENCED: so a client that does not look is stopped too.
-- Both keys belong into one slot of a cluster: {account-7} and {account-7}:fence.
-- In a script of one's own: copy `admit`, and call it before the first write.

-- Numbers of Lua hold only 53 bits, so tokens are compared as text of 19 digits.
local function nineteen(token)
  local digits = string.match(token or '', '^0*([1-9]%d*)$')
  if not digits or #digits > 19 then
    return nil
  end
  digits = string.rep('0', 19 - #digits) .. digits
  return digits <= '9223372036854775807' and digits or nil
end

-- nil when the token is admitted, else the error to return. Remembers it for `ttl` ms.
local function admit(fence_key, token, ttl)
  local mine = nineteen(token)
  ttl = tonumber(ttl)
  if not mine or not ttl or ttl < 0 then
    return redis.error_reply('ERR fence: a token above 0 and a time in ms are needed')
  end
  local highest = redis.call('GET', fence_key)
  if highest and mine < highest then
    return redis.error_reply('FENCED token ' .. token .. ' is too low, ' ..
                             string.gsub(highest, '^0+', '') .. ' was admitted')
  end
  if ttl > 0 then
    redis.call('SET', fence_key, mine, 'PX', string.format('%d', ttl))
  else
    redis.call('SET', fence_key, mine)
  end
  return nil
end

local value_ttl = tonumber(ARGV[4] or '0')
if #KEYS ~= 2 or not ARGV[2] or not value_ttl or value_ttl < 0 then
  return redis.error_reply('ERR fence: KEYS value fence, ARGV token value fence-ttl [value-ttl]')
end
local refused = admit(KEYS[2], ARGV[1], ARGV[3])
if refused then
  return refused
end
if value_ttl > 0 then
  return redis.call('SET', KEYS[1], ARGV[2], 'PX', string.format('%d', value_ttl))
end
return redis.call('SET', KEYS[1], ARGV[2])
