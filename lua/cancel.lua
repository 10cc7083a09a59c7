-- cancel: take tickets out of the queue, or give back a grant that crossed the cancel.
-- ARGV  4.. tickets
-- Answer: a letter for each: what it was, q (queued) | h (held) | n (none)

--@include load
local frees, strict, joins, thorough = true, false, BARE, false
local values = {}
for i = 4, #ARGV do
  values[i] = call('HGET', TICKETS, ARGV[i])
  if not values[i] then thorough = true end
end
--@include enter

local letters, answer = '', ''
for i = 4, #ARGV do
  local ticket, value = ARGV[i], values[i]
  --@include withdraw
  letters = letters .. answer
end
answer = letters

--@include dispatch
--@include finish
--@include reply
