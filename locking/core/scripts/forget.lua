#!lua flags=allow-oom
-- Takes DONE marks back, on a person's order: process again. The mark's token stays as the floor,
-- for a ttl. ARG: [ttl].
local skew, common_ttl = tonumber(sub(ARGV[1], 1, 13)), tonumber(sub(ARGV[1], 14, 26))
for i = 2, #KEYS do
  local key, value = KEYS[i], pcall('GET', KEYS[i])
  local state = value and state_of(value)
  local answer = 'X'
  if state == 68 then -- D
    local ends = now + (common_ttl or tonumber(ARGV[i]))
    call('SET', key, 'F' .. sub(value, 2, 17), 'PXAT', format('%d', ends + 2 * skew))
    answer = 'F'
  elseif state == 72 then -- H
    local rest = tonumber(sub(value, 2, 12), 16) - now
    if rest > 0 then
      answer = 'C' .. sub(value, 13, 28) .. format('%013d', rest)
    end
  elseif value and state ~= 70 then -- F
    answer = '?'
  end
  answers[i + 2] = answer
end
return table.concat(answers)
