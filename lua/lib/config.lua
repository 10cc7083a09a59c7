-- config: what the newest open declared, and above it what an operator has set (configure). Included where settings
-- change or are told.
--
-- Stored, in the field "config", and brought by a caller, in its header, behind a "0", or a "1" on the first calls after
-- an open: "declared|declared_at|override|override_at"; the caller adds "|description". `declared` is six words (limit
-- max_queue max_wait lease max_hold idle; milliseconds), or empty when it declares nothing; `override` is seven words
-- (the same and paused), "-" for what is not set. The stamps tell which is newer after a loss of state.

local CONFIG = '^([^|]*)|(%d*)|([^|]*)|(%d*)'
local declared, declared_at, override, override_at = string.match(call('HGET', HASH, 'config') or '|||', CONFIG)
declared_at, override_at = tonumber(declared_at) or 0, tonumber(override_at) or 0

local function words(text)
  local list = {}
  for word in string.gmatch(text, '%S+') do
    list[#list + 1] = word
  end
  return list
end

-- The seven settings in force.
local function settings()
  local low, high, list = words(declared), words(override), {}
  for i = 1, 7 do
    list[i] = tonumber(high[i]) or tonumber(low[i]) or 0
  end
  return list
end

-- Stores the configuration and what follows from it. A lowered limit has the queue looked through for what can never
-- fit now.
local function put_config()
  local list, old_limit = settings(), limit
  limit, max_queue, lease, paused = list[1], list[2], list[4] * 1000, list[7]
  idle = max(list[6] * 1000, 2 * lease) -- the lease may be an operator's
  kept, cold = 0, nil
  version = max(version + 1, now)
  if limit < old_limit then
    if sweeping == 0 then sweeping, swept = 2, 0 else again = 1 end
  end
  call('HSET', HASH, 'config', format('%s|%d|%s|%d', declared, declared_at, override, override_at))
end

-- Takes over the caller's configuration where it is newer; `anew`: the limiter's record has to be written in any case.
local function adopt(anew)
  local declares, configuration = string.match(HEADER, '^%d+ %S* %d+ %d %d+ (.)(.*)$')
  local theirs, theirs_at, their_override, their_override_at = string.match(configuration, CONFIG)
  local stamp = declares == '1' and max(now, declared_at + 1) or tonumber(theirs_at) or 0
  local changed = anew
  if theirs ~= '' and theirs ~= declared and (stamp > declared_at or declared == '') then
    declared, declared_at, changed = theirs, stamp, true
  end
  if (tonumber(their_override_at) or 0) > override_at then
    override, override_at, changed = their_override, tonumber(their_override_at), true
  end
  if changed then put_config() end
end

-- For a caller that knows an older version.
local function describe()
  return format('%d %d %d %d %d %d %d', unpack(settings())) -- concat keeps 14 digits
    .. '|' .. format('%s|%d|%s|%d', declared, declared_at, override, override_at)
end
