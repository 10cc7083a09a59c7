-- cancel: take tickets out of the queue, or give back a grant that crossed the cancel.
-- ARGV  4.. tickets
-- Answer: ok and a letter for each, q (was queued) | h (held) | n (none). In brief: the letters.

--@include load
local frees, strict, joins, thorough = true, false, BARE, false
local values = {}
for i = 4, #ARGV do
  values[i] = call('HGET', TICKETS, ARGV[i])
  if not values[i] then thorough = true end
end
--@include enter

local were = {}
for i = 4, #ARGV do
  local ticket, value = ARGV[i], values[i]
  if value and call('HDEL', TICKETS, ticket) == 1 then
    if call('ZREM', QUEUE, ticket) == 1 then
      waiting = waiting - 1
      were[#were + 1] = 'q'
    else
      if call('ZREM', HELD, ticket) == 0 then torn = 1 end
      used, holding = max(0, used - (tonumber(string.match(value, '^%x+ (%d+)')) or 1)), holding - 1
      were[#were + 1] = 'h'
    end
  else
    call('HDEL', HASH, '-')
    were[#were + 1] = 'n'
  end
end

--@include dispatch
--@include finish
local letters = table.concat(were)
if same then return mine == '' and letters or letters .. ' ' .. mine end
return { 'ok', epoch, mine, version, letters }
