-- acquire: enqueue, then dispatch; never a grant past the queue. Doing it again tells what has become of the ticket.
-- ARGV  7 ticket  8 cost  9 "1" when it may wait  10 its order from before (0: new)  11 label
-- Answer: granted fence order | queued order position estimate_ms | busy (would have to wait, and may not)
--       | impossible limit | full waiting max_queue retry_after_ms

local stopped = enter(false, true, true)
if stopped then return stopped end
local ticket, cost, may_wait, old_order, label = ARGV[7], tonumber(ARGV[8]), ARGV[9] == '1', tonumber(ARGV[10]), ARGV[11]

if call('HEXISTS', TICKETS, ticket) == 1 then
  dispatch()
  return ticket_answer(ticket, finish())
end
if impossible(cost) then
  dispatch()
  return answer('impossible', finish(), s.limit)
end

local function has_room()
  local at_once = waiting == 0 and s.paused == 0 and s.now >= s.grace and cost <= s.limit - s.used
  return at_once or waiting < s.max_queue
end
if not has_room() then
  dispatch() -- the dead may be taking the room
  if not has_room() then return answer('full', finish(), waiting, s.max_queue, estimate(1)) end
end

local order = old_order
if order == 0 then
  order = max(s.order + 1, s.now)
  put('order', order)
end
call('HSET', TICKETS, ticket, int(cost) .. ' ' .. int(order) .. (label ~= '' and ' ' .. label or ''))
call('ZADD', QUEUE, order, ticket)
waiting = waiting + 1
dispatch()
if not may_wait and call('ZREM', QUEUE, ticket) == 1 then
  call('HDEL', TICKETS, ticket)
  return answer('busy', finish())
end
return ticket_answer(ticket, finish())
