#!lua flags=allow-oom
-- Takes DONE marks back, on a person's order: process again. The mark's token stays as the floor.
-- KEYS: the sentinel, then a name each. ARGV: max_skew (13 digits), then for each name ttl (13).
-- Formats and answers: locking/redis/wire.h.
local call, sub, format = redis.call, string.sub, string.format

local sentinel = call('GET', KEYS[1])
if not sentinel or sub(sentinel, 1, 1) ~= 'C' then
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local quarantined = now < tonumber(sub(sentinel, 90, 102))
local skew = tonumber(ARGV[1])

local function forget(key, ttl)
  local value = call('GET', key)
  if not value then
    return 'X'
  end
  local state = sub(value, 1, 1)
  if state == 'D' then
    local ends = now + ttl
    call('SET', key, 'F' .. sub(value, 2, 20) .. format('%013d', ends), 'PXAT',
         format('%d', ends + 2 * skew))
    return 'F'
  elseif state == 'H' then
    local rest = sub(value, 53, 65) - now
    if rest > 0 then
      return 'C' .. sub(value, 2, 20) .. format('%013d', rest)
    end
    return 'X'
  elseif state == 'F' then
    return 'X'
  end
  return '?'
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = forget(KEYS[i], ARGV[i])
end
return table.concat(answers)
