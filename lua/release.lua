-- release: give permits back. A permit that was taken back already frees nothing.
-- ARGV  4.. pairs: ticket, fence
-- Answer: a digit for each pair, 1 (freed) | 0 (stale)

--@include load
local frees, strict, joins, thorough = true, false, false, false
local values = #ARGV > 5 and { [ARGV[4]] = value }
for i = 6, #ARGV, 2 do
  values[ARGV[i]] = call('HGET', HASH, ARGV[i])
end
--@include enter

local digits, answer = '', ''
for i = 4, #ARGV, 2 do
  local ticket, its_fence, value = ARGV[i], ARGV[i + 1], value
  if values then value = not anew and values[ticket] end
  --@include free
  if answer == '1' and values then values[ticket] = nil end -- it may be named twice
  digits = digits .. answer
end
answer = digits

--@include dispatch
--@include finish
--@include reply
