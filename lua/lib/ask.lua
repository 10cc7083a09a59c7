-- ask: of the acquire of `ticket`: enqueue, then dispatch; never a grant past the queue. Sets `answer`:
--       gFENCE,ORDER                  granted
--       qORDER,POSITION,ESTIMATE      queued; milliseconds, -1: unknown
--       b                             busy: would have to wait, and may not
--       xLIMIT                        impossible
--       fWAITING,MAX_QUEUE,RETRY_AFTER  full; milliseconds, -1: unknown
--       n                             not there (any more)

local fits = limit == 0 or cost <= limit
local entered, known, room, at_once = false, false, false, false
local granted_before = granted

for turn = 1, 2 do
  at_once = waiting == 0 and paused == 0 and now >= grace and cost <= limit - used
  room = at_once or waiting < max_queue
  if fits and room then
    local place = old_order == 0 and max(order + 1, now) or old_order
    local value = format('%x', place)
    if label ~= '' or cost ~= 1 then value = value .. format(label ~= '' and ' %d %s' or ' %d', cost, label) end
    entered = call('HSETNX', TICKETS, ticket, value) == 1
    known = not entered
    if entered then order = max(order, place) end
    if entered and at_once then
      -- Nobody waits and it fits: what dispatch would do with it, in half the calls.
      fence = max(fence + 1, now)
      call('ZADD', HELD, format('%d', fence), ticket)
      used, granted, holding = used + cost, granted + 1, holding + 1
    elseif entered then
      if call('ZADD', QUEUE, format('%d', place), ticket) == 0 then torn = 1 end
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
  waiting = waiting - 1
  answer = 'b'
elseif not known and not fits then
  answer = format('x%d', limit)
elseif not known and not entered then
  answer = format('f%d,%d,%d', waiting, max_queue, hold > 0 and limit > 0 and floor(hold / limit / 1000) or -1)
elseif entered and at_once then
  answer = format('g%d,%d', fence, old_order == 0 and order or old_order)
elseif entered and old_order == 0 and granted == granted_before then -- the last in line, without a look
  answer = format('q%d,%d,%d', order, waiting, hold > 0 and limit > 0 and floor(waiting * hold / limit / 1000) or -1)
else
  --@include ticket
end
