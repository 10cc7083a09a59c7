-- cancel: take tickets out of the queue, or give back a grant that crossed the cancel.
-- ARGV  7.. tickets
-- Answer: ok, then for each "queued" | "held" | "none": what it was

local frees, strict, joins = true, false, string.sub(ARGV[5], 1, 1) == '1'
--@include enter

local were = {}
for i = 7, #ARGV do
  local ticket = ARGV[i]
  local value = call('HGET', TICKETS, ticket)
  if not value then
    call('HDEL', HASH, '-')
    were[#were + 1] = 'none'
  else
    call('HDEL', TICKETS, ticket)
    if call('ZREM', QUEUE, ticket) == 1 then
      waiting = waiting - 1
      were[#were + 1] = 'queued'
    else
      call('ZREM', HELD, ticket)
      used, holding = max(0, used - (tonumber(string.match(value, '^%x+ (%d+)')) or 1)), holding - 1
      were[#were + 1] = 'held'
    end
  end
end

--@include dispatch
--@include finish
return { 'ok', epoch, mine, version, unpack(were) }
