#!lua flags=allow-oom
-- Gives own leases a new deadline. By nonce only; never creates a key, never revives a lease. ARG:
-- nonce (16 bytes) [ttl].
local skew, common_ttl = tonumber(sub(ARGV[1], 1, 13)), tonumber(sub(ARGV[1], 14, 26))
local known_ttl, life, head, expiry
for i = 2, #KEYS do
  local key, ask, ttl = KEYS[i], ARGV[i], common_ttl
  local value = pcall('GET', key)
  local answer = 'X'
  if value and #value >= 44 and sub(value, 29, 44) == sub(ask, 1, 16)
    and byte(value) == 72 then -- H
    if now < tonumber(sub(value, 2, 12), 16) then
      ttl = ttl or tonumber(sub(ask, 17, 29))
      if ttl ~= known_ttl then
        known_ttl, life, head = ttl, ttl + 2 * skew, format('H%011x', now + ttl)
        expiry = format('%d', now + life)
      end
      local held = head .. sub(value, 13)
      if call('PTTL', key) > life then -- the ttl was longer, or the clock went back
        call('SET', key, held, 'KEEPTTL')
      else
        call('SET', key, held, 'PXAT', expiry)
      end
      answer = 'E'
    end
  elseif value then
    local state = state_of(value)
    if state == 72 then -- H
      answer = 'O' .. sub(value, 13, 28)
    elseif state == 68 then -- D
      answer = 'D' .. sub(value, 2, 33) .. format('%013d', math.max(0, call('PTTL', key)))
    elseif state ~= 70 then -- F
      answer = '?'
    end
  end
  answers[i + 2] = answer
end
return table.concat(answers)
