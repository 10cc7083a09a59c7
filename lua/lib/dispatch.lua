-- dispatch(): the only place where a permit is given. Every mutating verb is: change something, then dispatch.
-- All loops are bounded; what is left to do is said by `more`, and the next call goes on.

local WINDOW, BATCH = 16, 128
local more = false
local messages = {} -- owner -> what it is to be told: "g,number,fence,order" granted, "x,number" impossible,
                    -- "r,number" permit revoked, "v,number" place in line revoked

local function tell(ticket, kind, ...)
  local owner = owner_of(ticket)
  local text = table.concat({ kind, number_of(ticket), ... }, ',')
  messages[owner] = messages[owner] and messages[owner] .. ' ' .. text or text
end

local function forget(ticket, key)
  call('ZREM', key, ticket)
  call('HDEL', TICKETS, ticket)
  if key == QUEUE then waiting = waiting - 1 end
end

-- Takes a held ticket away, whatever the reason.
local function free(ticket, cost)
  forget(ticket, HELD)
  put('used', max(0, s.used - cost))
end

local function start_sweep()
  if s.sweep == '' then put('sweep', 'h0') else put('again', 1) end
end

-- Forgets instances whose time has passed. What they held and waited for is found by sweep().
local function reap()
  if s.now < s.calm or not earliest or earliest >= s.now then return end
  local dead = call('ZRANGEBYSCORE', INSTANCES, '-inf', '(' .. int(s.now), 'LIMIT', 0, BATCH)
  if #dead == 0 then return end -- it was the caller's own, which has just been renewed
  for _, instance in ipairs(dead) do
    call('ZREM', INSTANCES, instance)
    call('HDEL', HASH, 'i:' .. instance, 'd:' .. instance)
  end
  start_sweep()
  more = more or #dead == BATCH
end

local lives = {}
local function alive(owner)
  if lives[owner] == nil then
    local expiry = tonumber(call('ZSCORE', INSTANCES, owner) or nil)
    lives[owner] = expiry ~= nil and (expiry >= s.now or s.now < s.calm)
  end
  return lives[owner]
end

local function impossible(cost)
  return cost > s.limit and s.limit > 0
end

-- Walks through all that is held, then through the queue, a batch a call, and drops what has no living owner or can
-- never fit. `sweep` is the place it has come to: "h" or "q" and the last score seen.
local function sweep()
  if s.sweep == '' then return end
  local key = string.sub(s.sweep, 1, 1) == 'h' and HELD or QUEUE
  local page = call('ZRANGEBYSCORE', key, '(' .. string.sub(s.sweep, 2), '(+inf', 'WITHSCORES', 'LIMIT', 0, BATCH)
  local names = {}
  for i = 1, #page, 2 do
    names[#names + 1] = page[i]
  end
  local values = #names > 0 and call('HMGET', TICKETS, unpack(names)) or {}
  for i, ticket in ipairs(names) do
    local cost = unpack_ticket(values[i])
    if not alive(owner_of(ticket)) then
      if key == HELD then free(ticket, cost) else forget(ticket, QUEUE) end
    elseif key == QUEUE and impossible(cost) then
      forget(ticket, QUEUE)
      tell(ticket, 'x')
    end
  end
  if #names == BATCH then
    put('sweep', string.sub(s.sweep, 1, 1) .. int(tonumber(page[#page])))
  elseif key == HELD then
    put('sweep', 'q0')
  else
    put('sweep', s.again == 1 and 'h0' or '')
    put('again', 0)
  end
  more = more or s.sweep ~= ''
end

local function grant(ticket, cost, order)
  put('fence', max(s.fence + 1, s.now))
  put('used', s.used + cost)
  put('granted', s.granted + 1)
  call('ZREM', QUEUE, ticket)
  call('ZADD', HELD, s.fence, ticket)
  waiting = waiting - 1
  tell(ticket, 'g', int(s.fence), int(order))
end

-- One window at the head of the queue. Returns true when the next window may be looked at.
local function admit_window(size)
  local page = call('ZRANGE', QUEUE, 0, size - 1)
  if page[#page] == SENTINEL then page[#page] = nil end
  if #page == 0 then return false end
  local values = call('HMGET', TICKETS, unpack(page))
  for i, ticket in ipairs(page) do
    local cost, order = unpack_ticket(values[i])
    if not alive(owner_of(ticket)) then
      forget(ticket, QUEUE)
    elseif impossible(cost) then
      forget(ticket, QUEUE)
      tell(ticket, 'x')
    elseif cost > s.limit - s.used then
      return false -- nobody passes the head
    else
      grant(ticket, cost, order)
    end
  end
  return true
end

local function dispatch()
  reap()
  sweep()
  local budget = BATCH
  while s.paused == 0 and s.now >= s.grace and s.used < s.limit and waiting > 0 do
    if budget <= 0 then
      more = true
      return
    end
    local size = min(s.limit - s.used + WINDOW, BATCH)
    budget = budget - size
    if not admit_window(size) then return end
  end
end

-- Ends a verb: writes the record, tells the owners, and returns what the caller itself is to be told.
-- PUBLISH comes last, and a denied or failed one changes nothing: the poll finds what it did not deliver.
local function finish()
  flush()
  local mine = messages[ME]
  messages[ME] = nil
  for owner, text in pairs(messages) do
    redis.pcall('PUBLISH', 'fq:' .. owner, int(s.epoch) .. ' ' .. text .. '|' .. HASH)
  end
  return mine or ''
end

-- What has become of a ticket: {"granted", fence, order} | {"queued", order} | nil.
local function find_ticket(ticket)
  local value = call('HGET', TICKETS, ticket)
  if not value then return nil end
  local _, order = unpack_ticket(value)
  local fence = call('ZSCORE', HELD, ticket)
  if fence then return { 'granted', int(tonumber(fence)), int(order) } end
  return { 'queued', int(order) }
end

-- Milliseconds until the one at `position` (1: next) is likely served: as many hold times as there are rounds of the
-- limit before it (Little's law, with the mean of hold time times cost); -1 when nothing is known yet.
local function estimate(position)
  if s.hold == 0 or s.limit == 0 then return -1 end
  return floor(position * s.hold / s.limit / 1000)
end

-- The answer about one ticket after dispatch.
local function ticket_answer(ticket, notices)
  local state = find_ticket(ticket)
  if not state then return answer('gone', notices) end
  if state[1] == 'granted' then return answer('granted', notices, state[2], state[3]) end
  local position = call('ZRANK', QUEUE, ticket) + 1
  return answer('queued', notices, state[2], position, estimate(position))
end
