-- put_back: a held ticket returns to the queue, at its original order.
-- ARGV  7 ticket
-- Answer: as acquire's, or gone

local stopped = enter(true, true, false)
if stopped then return stopped end
local ticket = ARGV[7]
if call('ZSCORE', HELD, ticket) then
  local cost, order = unpack_ticket(call('HGET', TICKETS, ticket))
  call('ZREM', HELD, ticket)
  put('used', max(0, s.used - cost))
  call('ZADD', QUEUE, order, ticket)
  waiting = waiting + 1
end
dispatch()
return ticket_answer(ticket, finish())
