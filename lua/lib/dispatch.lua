-- dispatch: the only place where a permit is given. Every mutating verb is: change something, then dispatch. All loops
-- are bounded by BATCH; `more` says that work is left, and the next call goes on.

local BATCH, WINDOW = 128, 16
local bound = now >= calm and now or excused -- whose lease ended before is dead

--@include look

if due < bound then
  -- Reap: forget the instances whose time has passed. What they held and waited for is found by the sweep.
  local dead = call('ZRANGEBYSCORE', INSTANCES, '-inf', format('(%d', bound), 'LIMIT', 0, BATCH)
  for _, instance in ipairs(dead) do
    call('ZREM', INSTANCES, instance)
    call('HDEL', HASH, 'i:' .. instance, 'd:' .. instance)
  end
  if #dead > 0 then
    call('HSET', HASH, 'forgot', format('%d', now))
    if sweeping == 0 then sweeping, swept = 1, 0 else again = 1 end
  end
  if #dead == BATCH then more = 1 end
  due = tonumber(call('ZRANGE', INSTANCES, 0, 0, 'WITHSCORES')[2])
  if not due then due, torn = math.huge, 1 end
end

if sweeping > 0 then
  -- Sweep: walk through all that is held, then through the queue, a batch a call, and drop what has no living owner
  -- or can never fit.
  cold = nil
  local key = sweeping == 1 and HELD or QUEUE
  local page = call('ZRANGEBYSCORE', key, format('(%d', swept), '(+inf', 'WITHSCORES', 'LIMIT', 0, BATCH)
  for i = 1, #page, 2 do
    local ticket = page[i]
    local owner = string.match(ticket, '^(.-):') or ticket
    local known = call('HMGET', HASH, 'i:' .. owner, ticket)
    local cost = tonumber(string.match(known[2] or '', '^%S+ (%d+)')) or 1
    local dead = (known[1] and struct.unpack('<d', known[1]) or 0) < bound
    local misfit = sweeping == 2 and limit > 0 and cost > limit
    if dead or misfit then
      call('ZREM', key, ticket)
      call('HDEL', HASH, ticket)
      if sweeping == 1 then used, holding = max(0, used - cost), holding - 1 else waiting = waiting - 1 end
    end
    if misfit and not dead then
      messages = messages or {}
      messages[owner] = (messages[owner] and messages[owner] .. ' ' or '')
        .. format('x,%s,%d', string.match(ticket, '%d*$'), limit)
    end
  end
  if #page == 2 * BATCH then
    swept = tonumber(page[#page])
  elseif sweeping == 1 then
    sweeping, swept = 2, 0
  else
    sweeping, swept, again = again, 0, 0
  end
  if sweeping > 0 then more = 1 end
end

local size, budget = limit - used, BATCH
while used < limit and waiting > 0 and paused == 0 and now >= grace do
  if budget <= 0 then
    more = 1
    break
  end
  size = min(size, BATCH)
  budget = budget - size
  local blocked, gone, admitted = false, 0, nil -- so many leave the front; fences and tickets of those who are granted
  local window = call('ZRANGE', QUEUE, 0, size - 1)
  for i = 1, #window do
    local ticket = window[i]
    if ticket == '.' then break end
    local owner, number = string.match(ticket, '^(.-):(%d+)$')
    if not owner then owner, number = ticket, '' end -- not ours: it has no living owner
    local expiry, value = my_expiry, nil
    if owner ~= ME or not expiry then
      local known = call('HMGET', HASH, 'i:' .. owner, ticket)
      expiry, value = known[1] and struct.unpack('<d', known[1]) or 0, known[2]
    else
      value = ticket == fresh and fresh_text or call('HGET', HASH, ticket)
    end
    if not value then
      --@include flush
      value = call('HGET', HASH, ticket)
      if not value then torn = 1 end
    end
    local place, rest = string.match(value or '0', '^(%x+)(.*)$')
    local cost = rest == '' and 1 or tonumber(string.match(rest, '^ (%d+)')) or 1
    local word
    if expiry < bound then
      call('HDEL', HASH, ticket) -- a zombie
      gone = i
    elseif cost > limit then
      call('HDEL', HASH, ticket)
      gone = i
      word = format('x,%s,%d', number, limit)
    elseif cost > limit - used then
      blocked = true -- nobody passes the head
      break
    else
      fence = max(fence + 1, now)
      local fence_text = format('%d', fence)
      if admitted then
        admitted[#admitted + 1] = fence_text
        admitted[#admitted + 1] = ticket
      else
        admitted = { fence_text, ticket }
      end
      used, granted, holding, gone = used + cost, granted + 1, holding + 1, i
      if ticket == fresh then fresh = nil end
      local name, text = ticket, place .. '=' .. fence_text .. rest
      --@include write
      word = 'g,' .. number .. ',' .. fence_text .. format(',%d', tonumber(place, 16))
    end
    if word and owner == ME then
      mine = mine == '' and word or mine .. ' ' .. word
    elseif word then
      messages = messages or {}
      messages[owner] = messages[owner] and messages[owner] .. ' ' .. word or word
    end
  end
  if gone > 0 then
    call('ZREM', QUEUE, unpack(window, 1, gone))
    waiting = waiting - gone
  end
  if admitted then call('ZADD', HELD, unpack(admitted)) end
  if blocked then break end
  size = limit - used + WINDOW -- some were dead or misfits: look further
end
