-- acquire: enqueue, then dispatch; never a grant past the queue. Doing it again tells what has become of the ticket.
-- ARGV  3 "1" behind the first digit when it may wait
--       4 ticket; then, when there is more to say than cost 1 and nothing else:  5 cost  6 its order from before (0: new)
--       7 label
-- Answer: granted fence order | queued order position estimate_ms | busy (would have to wait, and may not)
--       | impossible limit | full waiting max_queue retry_after_ms
--       In brief: "gFENCE,ORDER" | "qORDER,POSITION,ESTIMATE"

--@include load
local frees, strict, joins, thorough = false, true, true, false
--@include enter

local ticket, may_wait, cost, old_order, label = ARGV[4], string.sub(ARGV[3], 2, 2) == '1', 1, 0, ''
if ARGV[5] then cost, old_order, label = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] end
local fits = limit == 0 or cost <= limit
local entered, known, room, at_once = false, false, false, false
local granted_before = granted

for turn = 1, 2 do
  at_once = waiting == 0 and paused == 0 and now >= grace and cost <= limit - used
  room = at_once or waiting < max_queue
  if fits and room then
    local place = old_order == 0 and max(order + 1, now) or old_order
    local value = format('%x', place)
    if label ~= '' or cost ~= 1 then value = value .. ' ' .. ARGV[5] .. (label ~= '' and ' ' .. label or '') end
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
  --@include finish
  return { 'busy', epoch, mine, version }
end
--@include finish
if not known and not fits then return { 'impossible', epoch, mine, version, limit } end
if not known and not entered then
  local retry_after = hold > 0 and limit > 0 and floor(hold / limit / 1000) or -1
  return { 'full', epoch, mine, version, waiting, max_queue, retry_after }
end
local its_order = old_order == 0 and order or old_order
if entered and at_once then
  if same then return format('g%d,%d', fence, its_order) .. (mine == '' and '' or ' ' .. mine) end
  return { 'granted', epoch, mine, version, fence, its_order }
end
if entered and old_order == 0 and granted == granted_before then -- the last in line, without a look
  local estimate = hold > 0 and limit > 0 and floor(waiting * hold / limit / 1000) or -1
  if same then return format('q%d,%d,%d', order, waiting, estimate) .. (mine == '' and '' or ' ' .. mine) end
  return { 'queued', epoch, mine, version, order, waiting, estimate }
end
--@include ticket
