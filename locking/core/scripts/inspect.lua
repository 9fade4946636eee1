#!lua flags=no-writes
-- Looks at locks and changes nothing. ARG: [ttl], unused.
for i = 2, #KEYS do
  local value = pcall('GET', KEYS[i])
  local state = value and state_of(value)
  local answer = 'X'
  if state == 68 then -- D
    answer = 'D' .. sub(value, 2, 33) .. format('%013d', math.max(0, call('PTTL', KEYS[i])))
  elseif state == 72 then -- H
    local rest = tonumber(sub(value, 2, 12), 16) - now
    answer = 'C' .. sub(value, 13, 28) .. format('%013d', math.max(0, rest))
  elseif state == 70 then -- F
    answer = 'S' .. sub(value, 2, 17)
  elseif value then
    answer = '?'
  end
  answers[i + 2] = answer
end
return table.concat(answers)
