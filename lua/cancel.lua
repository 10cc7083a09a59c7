-- cancel: take tickets out of the queue, or give back a grant that crossed the cancel.
-- ARGV  4.. tickets
-- Answer: a letter for each: what it was, q (queued) | h (held) | n (none)

--@include load
local frees, strict, joins, thorough = true, false, BARE, false
local values = #ARGV > 4 and { value }
for i = 5, #ARGV do
  values[i - 3] = call('HGET', HASH, ARGV[i])
end
--@include enter

local letters, answer = '', ''
for i = 4, #ARGV do
  local ticket, value = ARGV[i], value
  if values then value = not anew and values[i - 3] end
  --@include withdraw
  letters = letters .. answer
end
answer = letters

--@include dispatch
--@include finish
--@include reply
