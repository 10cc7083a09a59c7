-- restore: after a loss of state, or after having been reaped, an instance brings back what it holds and waits for.
-- ARGV  4.. six for each ticket: kind, ticket, order, fence, cost, label; kinds: "h" held, "l" admitted locally while
--       Redis was away, "q" waiting, "c" held: only look whether it still is
-- Answer: ok, then for each ticket "h,fence,order" | "q" | "lost"

--@include load
local frees, strict, joins, thorough = true, false, true, true
--@include enter

call('HDEL', HASH, '-')
do
  --@include config
  adopt(false)
end
--@include renew
--@include record

local states, excess = {}, 0
for i = 4, #ARGV, 6 do
  local kind, ticket, label = ARGV[i], ARGV[i + 1], ARGV[i + 5]
  local place, its_fence, cost = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
  if kind == 'l' and call('ZREM', QUEUE, ticket) == 1 then
    call('HDEL', HASH, ticket)
    waiting = waiting - 1
  end
  local value = call('HGET', HASH, ticket)
  if not value then
    if place == 0 then place = max(order + 1, now) end -- admitted locally before it was ever in line
    order = max(order, place)
    if kind == 'l' then its_fence = max(fence + 1, now) end
    local held = kind == 'l' or kind == 'h' and (now < grace or used + cost <= limit)
    if held or kind == 'q' then
      value = held and format('%x=%d', place, its_fence) or format('%x', place)
      if label ~= '' or cost ~= 1 then value = value .. format(label ~= '' and ' %d %s' or ' %d', cost, label) end
      call('HSET', HASH, ticket, value)
    end
    if held then
      call('ZADD', HELD, its_fence, ticket)
      excess = excess + max(0, used + cost - max(limit, used))
      used, holding, fence = used + cost, holding + 1, max(fence, its_fence)
    elseif kind == 'q' then
      call('ZADD', QUEUE, place, ticket)
      waiting = waiting + 1
    end
  end
  local stored_place, stored_fence = string.match(value or '', '^(%x+)=(%d+)')
  if stored_fence then
    states[#states + 1] = format('h,%s,%d', stored_fence, tonumber(stored_place, 16))
  else
    states[#states + 1] = value and 'q' or 'lost'
  end
end

if excess > 0 then call('HSET', HASH, 'overshoot', format('%d', call('HGET', HASH, 'overshoot') + excess)) end

--@include dispatch
--@include finish
return { 'ok', epoch, mine, version, unpack(states) }
