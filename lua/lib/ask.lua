-- ask: of the acquire of `ticket`, of which `value` is known: enqueue, then dispatch; never a grant past the queue. Sets
-- `answer`:
--       gFENCE,ORDER                  granted
--       qORDER,POSITION,ESTIMATE      queued; milliseconds, -1: unknown
--       b                             busy: would have to wait, and may not
--       xLIMIT                        impossible
--       fWAITING,MAX_QUEUE,RETRY_AFTER  full; milliseconds, -1: unknown
--       n                             not there (any more)

local fits = limit == 0 or cost <= limit
local entered, room, at_once = false, false, false
local granted_before = granted

for turn = 1, 2 do
  at_once = waiting == 0 and paused == 0 and now >= grace and cost <= limit - used
  room = at_once or waiting < max_queue
  if fits and room and not value then
    entered = true
    local place, text = old_order == 0 and max(order + 1, now) or old_order, nil
    order = max(order, place)
    if at_once then
      -- Nobody waits and it fits: what dispatch would do with it, in half the calls.
      fence = max(fence + 1, now)
      local fence_text = format('%d', fence)
      call('ZADD', HELD, fence_text, ticket)
      used, granted, holding = used + cost, granted + 1, holding + 1
      text = format('%x=%s', place, fence_text)
    else
      if call('ZADD', QUEUE, format('%d', place), ticket) == 0 then torn = 1 end
      waiting = waiting + 1
      text = format('%x', place)
    end
    if label ~= '' or cost ~= 1 then text = text .. format(label ~= '' and ' %d %s' or ' %d', cost, label) end
    fresh, fresh_text = ticket, text
  end
  if turn == 1 or room then
    --@include dispatch
  end
  if not fits or room or value then break end
  -- No room: the dead may have been taking it, and dispatch has dropped some of them.
end

local is_busy = entered and not at_once and not may_wait and call('ZREM', QUEUE, ticket) == 1
if fresh and not is_busy then
  local name, text = fresh, fresh_text
  --@include write
end
fresh = nil
if is_busy then
  waiting = waiting - 1
  answer = 'b'
elseif not value and not fits then
  answer = format('x%d', limit)
elseif not value and not entered then
  answer = format('f%d,%d,%d', waiting, max_queue, hold > 0 and limit > 0 and floor(hold / limit / 1000) or -1)
elseif entered and at_once then
  answer = format('g%d,%d', fence, old_order == 0 and order or old_order)
elseif entered and old_order == 0 and granted == granted_before then -- the last in line, without a look
  answer = format('q%d,%d,%d', order, waiting, hold > 0 and limit > 0 and floor(waiting * hold / limit / 1000) or -1)
else
  --@include ticket
end
