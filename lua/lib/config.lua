-- Configuration: what the newest open declared, and above it what an operator has set (configure).
--
-- A caller brings "declared|declared_at|override|override_at|D|description": `declared` is six words
-- (limit max_queue max_wait lease max_hold idle; milliseconds), or empty when it declares nothing; `override` is
-- seven words (the same and `paused`), "-" for what is not set; the stamps tell which is newer after a loss of
-- state; D is "1" on the first calls after an open.

local SETTINGS = { 'limit', 'max_queue', 'max_wait', 'lease', 'max_hold', 'idle', 'paused' }

local function words(text)
  local list = {}
  for word in string.gmatch(text, '%S+') do
    list[#list + 1] = word
  end
  return list
end

local function config_of_caller()
  local declared, declared_at, override, override_at, declares, description =
    string.match(ARGV[6], '^([^|]*)|(%d*)|([^|]*)|(%d*)|([01])|(.*)$')
  return {
    declared = declared or '',
    declared_at = tonumber(declared_at) or 0,
    override = override or '',
    override_at = tonumber(override_at) or 0,
    declares = declares == '1',
    description = description or '',
  }
end

-- Computes the settings in force; a lowered limit has the queue looked through for what no longer fits.
local function put_settings(declared, override)
  local low, high = words(declared), words(override)
  local old_limit = s.limit
  for i, name in ipairs(SETTINGS) do
    put(name, tonumber(high[i]) or tonumber(low[i]) or 0)
  end
  put('version', max(s.version + 1, s.now))
  if s.limit < old_limit then
    put(s.sweep == '' and 'sweep' or 'again', s.sweep == '' and 'q0' or 1)
  end
end

-- Takes over the caller's configuration where it is newer than the stored one.
local function adopt(config)
  local raw = call('HMGET', HASH, 'declared', 'declared_at', 'override', 'override_at')
  local declared, override = raw[1] or '', raw[3] or ''
  local declared_at, override_at = tonumber(raw[2] or 0), tonumber(raw[4] or 0)
  local stamp = config.declares and max(s.now, declared_at + 1) or config.declared_at
  local changed = s.version == 0
  if config.declared ~= '' and config.declared ~= declared and (stamp > declared_at or declared == '') then
    declared, declared_at, changed = config.declared, stamp, true
  end
  if config.override_at > override_at then
    override, override_at, changed = config.override, config.override_at, true
  end
  if not changed then return end
  put('declared', declared)
  put('declared_at', declared_at)
  put('override', override)
  put('override_at', override_at)
  put_settings(declared, override)
end

-- The settings in force and where they come from, for a caller that knows an older version of them.
local function describe_config()
  local raw = call('HMGET', HASH, 'declared', 'declared_at', 'override', 'override_at', unpack(SETTINGS))
  for i = 1, 11 do
    raw[i] = raw[i] or (i > 4 and '0' or '')
  end
  return table.concat(raw, ' ', 5, 11) .. '|' .. table.concat(raw, '|', 1, 4)
end
