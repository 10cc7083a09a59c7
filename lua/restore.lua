-- restore: after a loss of state, or after having been reaped, an instance brings back what it holds and waits for.
-- ARGV  7.. six for each ticket: kind, ticket, order, fence, cost, label; kinds: "h" held, "l" admitted locally while
--       Redis was away, "q" waiting, "c" held: only look whether it still is
-- Answer: ok, then for each ticket "h,fence,order" | "q" | "lost"

local stopped = enter(true, false, true)
if stopped then return stopped end
adopt(config_of_caller())
renew(true)

local function hold(ticket, value, fence, cost)
  call('HSET', TICKETS, ticket, value)
  call('ZADD', HELD, fence, ticket)
  put('used', s.used + cost)
  put('fence', max(s.fence, fence))
end

local function bring_back(kind, ticket, order, fence, cost, label)
  local value = int(cost) .. ' ' .. int(order) .. (label ~= '' and ' ' .. label or '')
  put('order', max(s.order, order))
  if kind == 'q' then
    call('HSET', TICKETS, ticket, value)
    call('ZADD', QUEUE, order, ticket)
    waiting = waiting + 1
  elseif kind == 'l' then
    hold(ticket, value, max(s.fence + 1, s.now), cost)
  elseif kind == 'h' and (s.now < s.grace or s.used + cost <= s.limit) then
    hold(ticket, value, fence, cost)
  end
end

local states = {}
for i = 7, #ARGV, 6 do
  local kind, ticket = ARGV[i], ARGV[i + 1]
  if kind == 'l' and call('ZSCORE', QUEUE, ticket) then
    forget(ticket, QUEUE)
  end
  if call('HEXISTS', TICKETS, ticket) == 0 then
    bring_back(kind, ticket, tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), ARGV[i + 5])
  end
  local state = find_ticket(ticket)
  if not state then
    states[#states + 1] = 'lost'
  elseif state[1] == 'granted' then
    states[#states + 1] = 'h,' .. state[2] .. ',' .. state[3]
  else
    states[#states + 1] = 'q'
  end
end
dispatch()
return answer('ok', finish(), unpack(states))
