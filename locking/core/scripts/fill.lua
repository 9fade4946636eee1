#!lua flags=allow-oom
-- Carries a lease that a majority granted to the nodes that lack it. Ignores the order of tokens: a
-- rival that failed must not keep the holder out. Lengthens nothing. ARG: token (16 hex digits)
-- nonce (16 bytes) [ttl].
local skew, common_ttl = tonumber(sub(ARGV[1], 1, 13)), tonumber(sub(ARGV[1], 14, 26))
local known_ttl, life, head, expiry
for i = 2, #KEYS do
  local key, ask, ttl = KEYS[i], ARGV[i], common_ttl
  if not ttl then
    ask, ttl = sub(ask, 1, 32), tonumber(sub(ask, 33, 45))
  end
  if ttl ~= known_ttl then
    known_ttl, life, head = ttl, ttl + 2 * skew, format('H%011x', now + ttl)
    expiry = format('%d', now + life)
  end
  local value = pcall('GET', key)
  local answer, floor
  if value then
    local state = state_of(value)
    if state == 68 then -- D
      answer = 'D' .. sub(value, 2, 33) .. format('%013d', math.max(0, call('PTTL', key)))
    elseif state == 72 then -- H
      local rest = tonumber(sub(value, 2, 12), 16) - now
      if rest <= 0 then
        floor = #value > 44 and sub(value, 45, 60) or sub(value, 13, 28)
      elseif sub(value, 29, 44) == sub(ask, 17, 32) then
        answer = 'I'
      else
        answer = 'C' .. sub(value, 13, 28) .. format('%013d', rest)
      end
    elseif state == 70 then -- F
      floor = sub(value, 2, 17)
    else
      answer = '?'
    end
  end
  if not answer then
    -- The floor is written only where it is not the token.
    local held = head .. ask
    if floor and above(floor, ask) then
      held = held .. floor
    end
    if value and call('PTTL', key) > life then
      call('SET', key, held, 'KEEPTTL')
    else
      call('SET', key, held, 'PXAT', expiry)
    end
    answer = 'I'
  end
  answers[i + 2] = answer
end
return table.concat(answers)
