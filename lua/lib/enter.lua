-- enter(): what every mutating verb begins with. It finds out whether the limiter is what it was, and who is calling.

-- Two heartbeat intervals, in which holders register again before anybody is admitted.
local function grace_end()
  return s.now + floor(s.lease * 1000 * 2 / 3)
end

-- Throws away what is left of the old epoch, and writes the limiter's own record anew: the instances bring back what
-- they hold and wait for. Without `grace` (a limiter nobody remembers) it may admit at once.
local function begin_epoch(config, grace)
  adopt(config)
  put_settings() -- all of them, for the record that is written anew
  put('epoch', max(s.epoch + 1, KNOWN + 1, s.now))
  s.run, s.used, s.sweep, s.again, s.calm, s.kept = RUN, 0, '', 0, 0, 0
  s.grace = grace and grace_end() or 0
  call('HSET', HASH, 'epoch', s.epoch)
  call('UNLINK', unpack(KEYS))
  call('ZADD', QUEUE, '+inf', SENTINEL)
  call('ZADD', HELD, '+inf', SENTINEL)
  call('ZADD', INSTANCES, '+inf', SENTINEL)
  call('HSET', TICKETS, SENTINEL, '')
  for field in pairs(s) do
    dirty[field] = true
  end
  waiting, holding, earliest, my_expiry, my_generation = 0, 0, math.huge, nil, 0
end

-- Counts the caller alive. Every verb leaves it at least three quarters of a lease; `full` a whole one.
local function renew(full)
  if my_expiry and (full or my_expiry < s.now + s.lease * 750) then
    my_expiry = s.now + s.lease * 1000
    call('ZADD', INSTANCES, my_expiry, ME)
  end
end

local function join(config)
  my_expiry = s.now + s.lease * 1000
  call('ZADD', INSTANCES, my_expiry, ME)
  call('HSET', HASH, 'i:' .. ME, int(GENERATION), 'd:' .. ME, config.description)
  my_generation = GENERATION
end

-- Returns an answer when the verb must not go on.
--   frees    the verb has to work on a full Redis: its first write is one that frees
--   strict   the verb means nothing before the caller's tickets are known (resync)
--   joins    a caller that is not known is counted in
local function enter(frees, strict, joins)
  load_state()
  if my_generation > GENERATION then return answer('refused') end
  local config = config_of_caller()
  if not exists and config.declared == '' then return answer('none') end

  if frees then call('HDEL', HASH, '-') end
  if not exists or s.run ~= RUN or not whole then
    begin_epoch(config, exists or KNOWN ~= 0)
  else
    if config.declares then adopt(config) end
    if KNOWN ~= 0 and KNOWN ~= s.epoch and s.grace == 0 then
      put('grace', grace_end()) -- the epoch was opened by one who remembered nothing; this caller does
    end
    if holding + waiting > 0 and s.now - before > s.lease * 500 then
      put('calm', s.now + floor(s.lease * 1000 * 5 / 12)) -- a quiet gap: nobody could report, so nobody is reaped
    end
  end

  if strict and not BARE and (KNOWN ~= s.epoch or not my_expiry) then
    flush()
    return answer('resync')
  end
  if my_expiry then
    if my_generation < GENERATION then
      call('HSET', HASH, 'i:' .. ME, int(GENERATION))
      my_generation = GENERATION
    end
    renew(false)
  elseif joins then
    join(config)
  end
end
