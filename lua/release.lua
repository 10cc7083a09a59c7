-- release: give permits back. A permit that was taken back already frees nothing.
-- ARGV  4.. pairs: ticket, fence
-- Answer: a digit for each pair, 1 (freed) | 0 (stale)

--@include load
local frees, strict, joins, thorough = true, false, false, false
local values, fences = {}, {}
for i = 4, #ARGV, 2 do
  values[i], fences[i] = call('HGET', TICKETS, ARGV[i]), call('ZSCORE', HELD, ARGV[i])
  if not values[i] or not fences[i] then thorough = true end
end
--@include enter

local digits, answer = '', ''
for i = 4, #ARGV, 2 do
  local ticket, its_fence, value, held_fence = ARGV[i], ARGV[i + 1], values[i], fences[i]
  --@include free
  digits = digits .. answer
end
answer = digits

--@include dispatch
--@include finish
--@include reply
