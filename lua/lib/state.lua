-- The record of one limiter: read once at the start of a verb, written once at its end.
--
-- KEYS  1 hash  2 queue (ticket -> order)  3 held (ticket -> fence)  4 tickets (ticket -> "cost order label")
--       5 instances (instance -> microsecond until which it counts as alive)
-- ARGV  1 instance  2 generation of its connection  3 run id of the server  4 epoch it knows (0: none)
--       5 "1" when it neither holds nor waits for anything here  6 its configuration (see config.lua)
--       7.. arguments of the verb
-- Answer: {verdict, epoch, notices, version of the configuration, ...}. Verdicts that every verb may give:
--       refused  the command comes from an older connection of its instance; nothing was done
--       none     there is no such limiter, and the caller declares none
--       resync   state was lost, or the caller was reaped: it must `restore` first; nothing was done
--
-- Times are microseconds of a clock that never runs backwards: TIME + skew. Scripts do not roll back, so all is read
-- and judged before the first write. A full Redis lets a script write on when its first write frees memory (HDEL,
-- ZREM) and refuses the whole script when it may need some: each verb begins with the one that suits it.

local HASH, QUEUE, HELD, TICKETS, INSTANCES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local ME, GENERATION, RUN, KNOWN, BARE = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local call, floor, max, min = redis.call, math.floor, math.max, math.min

-- A member that is always there: a key without it has been lost, and an expiry set on the key stays.
local SENTINEL = '.'

local NUMBERS = {
  'epoch', 'now', 'skew', 'order', 'fence', 'used', 'limit', 'max_queue', 'lease', 'idle', 'paused', 'grace', 'calm',
  'version', 'revokes', 'hold', 'granted', 'kept', 'again',
}

local s = {}     -- the fields as they stand now
local dirty = {} -- the names of those that flush() has to write
local waiting, holding -- tickets in the queue, tickets held
local exists, whole, before, earliest, my_expiry, my_generation

local function int(n)
  return string.format('%.0f', n)
end

local function put(field, value)
  if s[field] ~= value then
    s[field] = value
    dirty[field] = true
  end
end

local function owner_of(ticket)
  return string.match(ticket, '^(.-):') or ticket
end

local function number_of(ticket)
  return string.match(ticket, ':(%d+)$') or '0'
end

local function unpack_ticket(value)
  local cost, order, label = string.match(value or '', '^(%d+) (%d+) ?(.*)$')
  return tonumber(cost) or 1, tonumber(order) or 0, label or ''
end

local function read_clock()
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2] + s.skew
  before = s.now
  if now < before then -- the wall clock was set back: go on from where it stood
    put('skew', s.skew + before - now)
    now = before
  end
  put('now', now)
end

-- When the first lease ends; nothing when even the sentinel is gone.
local function read_earliest()
  earliest = tonumber(call('ZRANGE', INSTANCES, 0, 0, 'WITHSCORES')[2] or nil)
end

-- Reads everything a verb judges by. Errors of type (WRONGTYPE) come from here, before anything is written.
local function load_state()
  local raw = call('HMGET', HASH, 'i:' .. ME, 'run', 'sweep', unpack(NUMBERS))
  my_generation, s.run, s.sweep = tonumber(raw[1] or 0), raw[2] or '', raw[3] or ''
  for i, field in ipairs(NUMBERS) do
    s[field] = tonumber(raw[i + 3] or 0)
  end
  exists = raw[4] ~= false
  waiting = call('ZCARD', QUEUE) - 1
  holding = call('ZCARD', HELD) - 1
  read_earliest()
  my_expiry = tonumber(call('ZSCORE', INSTANCES, ME) or nil)
  -- A key that was lost shows: its sentinel is gone, or the tickets are not those queued and held.
  whole = earliest and waiting >= 0 and holding >= 0 and call('HLEN', TICKETS) - 1 == waiting + holding
  read_clock()
end

local function answer(verdict, notices, ...)
  return { verdict, int(s.epoch), notices or '', int(s.version), ... }
end

-- Writes what has changed and pushes the expiry of the keys ahead. The last thing a verb does to its keys.
local function flush()
  if s.now - s.kept > s.idle * 125 then
    put('kept', s.now)
    for _, key in ipairs(KEYS) do
      call('PEXPIRE', key, s.idle)
    end
  end
  local changed = {}
  for field in pairs(dirty) do
    changed[#changed + 1] = field
    changed[#changed + 1] = s[field]
  end
  if #changed > 0 then call('HSET', HASH, unpack(changed)) end
end
