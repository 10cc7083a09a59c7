-- acquire: enqueue, then dispatch; never a grant past the queue. Doing it again tells what has become of the ticket.
-- ARGV  7 ticket  8 cost  9 "1" when it may wait  10 its order from before (0: new)  11 label
-- Answer: granted fence order | queued order position estimate_ms | busy (would have to wait, and may not)
--       | impossible limit | full waiting max_queue retry_after_ms

local frees, strict, joins = false, true, true
--@include enter

local ticket, cost, may_wait, old_order, label = ARGV[7], tonumber(ARGV[8]), ARGV[9] == '1', tonumber(ARGV[10]), ARGV[11]
local fits = limit == 0 or cost <= limit
local entered, known, room, at_once = false, false, false, false
local granted_before = granted

for turn = 1, 2 do
  at_once = waiting == 0 and paused == 0 and now >= grace and cost <= limit - used
  room = at_once or waiting < max_queue
  if fits and room then
    local place = old_order == 0 and max(order + 1, now) or old_order
    local value = format('%x', place)
    if label ~= '' or cost ~= 1 then value = value .. ' ' .. ARGV[8] .. (label ~= '' and ' ' .. label or '') end
    entered = call('HSETNX', TICKETS, ticket, value) == 1
    known = not entered
    if entered then order = max(order, place) end
    if entered and at_once then
      -- Nobody waits and it fits: what dispatch would do with it, in half the calls.
      fence = max(fence + 1, now)
      call('ZADD', HELD, fence, ticket)
      used, granted, holding = used + cost, granted + 1, holding + 1
    elseif entered then
      call('ZADD', QUEUE, place, ticket)
      waiting = waiting + 1
    end
  else
    known = call('HEXISTS', TICKETS, ticket) == 1
  end
  if turn == 1 or room then
    --@include dispatch
  end
  if not fits or room or known then break end
  -- No room: the dead may have been taking it, and dispatch has dropped some of them.
end

if entered and not at_once and not may_wait and call('ZREM', QUEUE, ticket) == 1 then
  call('HDEL', TICKETS, ticket)
  --@include finish
  return { 'busy', epoch, mine, version }
end
--@include finish
if not known and not fits then return { 'impossible', epoch, mine, version, limit } end
if not known and not entered then
  local retry_after = hold > 0 and limit > 0 and floor(hold / limit / 1000) or -1
  return { 'full', epoch, mine, version, waiting, max_queue, retry_after }
end
if entered and at_once then return { 'granted', epoch, mine, version, fence, old_order == 0 and order or old_order } end
if entered and old_order == 0 and granted == granted_before then -- the last in line, without a look
  local estimate = hold > 0 and limit > 0 and floor(waiting * hold / limit / 1000) or -1
  return { 'queued', epoch, mine, version, order, waiting, estimate }
end
--@include ticket
