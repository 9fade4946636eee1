#!lua
-- Asks for locks. ARG: token (16 hex digits) nonce (16 bytes) [ttl]. The order of the checks is
-- part of the protocol.
local skew, common_ttl = tonumber(sub(ARGV[1], 1, 13)), tonumber(sub(ARGV[1], 14, 26))

-- A token begins with its wall time: 11 hex digits of milliseconds since 2024-01-01.
local lowest, highest = now - skew - 1704067200000, now + skew - 1704067200000
local max_ttl = tonumber(sub(sentinel, 104, 111))

local known_ttl, head, expiry
for i = 2, #KEYS do
  local key, ask, ttl = KEYS[i], ARGV[i], common_ttl
  if not ttl then
    ask, ttl = sub(ask, 1, 32), tonumber(sub(ask, 33, 45))
  end
  if ttl ~= known_ttl then
    known_ttl, head = ttl, format('H%011x', now + ttl)
    expiry = format('%d', now + ttl + 2 * skew)
  end
  local answer, value
  local wall = tonumber(sub(ask, 1, 11), 16)
  local granted, acceptable = 'G', ttl <= max_ttl and wall <= highest and wall >= lowest
  if acceptable then
    -- Mostly the name is absent: one command both looks and takes it.
    value = pcall('SET', key, head .. ask, 'NX', 'GET', 'PXAT', expiry)
    if not value then
      answer = 'G'
    end
  else
    value = pcall('GET', key)
  end
  if value then
    local state, floor = state_of(value), nil
    if state == 68 then -- D
      answer = 'D' .. sub(value, 2, 33) .. format('%013d', math.max(0, call('PTTL', key)))
    elseif state == 72 then -- H
      local rest = tonumber(sub(value, 2, 12), 16) - now
      if sub(value, 13, 44) == ask then
        answer = 'G'
      elseif rest > 0 then
        answer = 'C' .. sub(value, 13, 28) .. format('%013d', rest)
      else
        granted = 'T'
        floor = #value > 44 and sub(value, 45, 60) or sub(value, 13, 28)
      end
    elseif state == 70 then -- F
      floor = sub(value, 2, 17)
    else
      answer = '?'
    end
    if floor and not above(ask, floor) then
      answer = 'S' .. floor
    end
  end
  if answer then
    answers[i + 2] = answer
  elseif acceptable then
    call('SET', key, head .. ask, 'PXAT', expiry)
    answers[i + 2] = granted
  elseif wall > highest then
    answers[i + 2] = 'A'
  else
    answers[i + 2] = wall < lowest and 'B' or 'L'
  end
end
return table.concat(answers)
