#!lua flags=allow-oom
-- Marks names as complete, whatever their state: it is evidence. A mark that is there stays. ARG: D
-- token (16 hex digits) crc (16) nonce (16 bytes) [remember_done, in the place of ttl]. The first 8
-- digits of a crc say what it is of: those of other things are not compared.
local skew, common_ttl = tonumber(sub(ARGV[1], 1, 13)), tonumber(sub(ARGV[1], 14, 26))

-- A token from a clock far ahead must not become a floor that nobody else can pass.
local highest = now + skew - 1704067200000

-- Marks that are carried with a short rest must end in time, whatever stood there: kept for as long
-- as the floor, they would be found and carried on, again and again.
local least_kept = tonumber(sub(sentinel, 104, 111)) + 2 * skew

local known_ttl, expiry
for i = 2, #KEYS do
  local key, ask, ttl = KEYS[i], ARGV[i], common_ttl
  local value = pcall('GET', key)
  local answer, state = 'N', nil
  if value and #value >= 44 and sub(value, 29, 44) == sub(ask, 34, 49)
    and byte(value) == 72 then -- H
    if now < tonumber(sub(value, 2, 12), 16) then
      answer = 'M'
    end
  elseif value then
    state = state_of(value)
    if not state then
      answer = '?'
    end
  end
  if state == 68 then -- D
    answer = 'Y' .. sub(value, 2, 17)
    if sub(value, 18, 25) == sub(ask, 18, 25) and sub(value, 26, 33) ~= sub(ask, 26, 33) then
      answer = 'Z' .. sub(value, 2, 33)
    end
  elseif answer ~= '?' then
    ttl = ttl or tonumber(sub(ask, 50, 62))
    if ttl ~= known_ttl then
      known_ttl, expiry = ttl, format('%d', now + ttl)
    end
    local mark = sub(ask, 1, 33)
    local wall = tonumber(sub(ask, 2, 12), 16)
    if wall > highest or (wall == highest and sub(ask, 13, 17) ~= '00000') then
      mark = format('D%011x00000', math.max(0, highest)) .. sub(ask, 18, 33)
    end
    if value and ttl >= least_kept and call('PTTL', key) > ttl then -- the clock went back
      call('SET', key, mark, 'KEEPTTL')
    else
      call('SET', key, mark, 'PXAT', expiry)
    end
  end
  answers[i + 2] = answer
end
return table.concat(answers)
