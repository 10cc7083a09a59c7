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
local function put_settings()
  local low, high = words(s.declared), words(s.override)
  local old_limit = s.limit
  for i, name in ipairs(SETTINGS) do
    put(name, tonumber(high[i]) or tonumber(low[i]) or 0)
  end
  put('version', max(s.version + 1, s.now))
  if s.limit < old_limit then
    put(s.sweep == '' and 'sweep' or 'again', s.sweep == '' and 'q0' or 1)
  end
end

-- Where the settings come from: read when needed, and current also when this verb has changed it.
local function load_origin()
  if s.declared then return end
  local raw = call('HMGET', HASH, 'declared', 'declared_at', 'override', 'override_at')
  s.declared, s.override = raw[1] or '', raw[3] or ''
  s.declared_at, s.override_at = tonumber(raw[2] or 0), tonumber(raw[4] or 0)
end

-- Takes over the caller's configuration where it is newer than the stored one.
local function adopt(config)
  load_origin()
  local stamp = config.declares and max(s.now, s.declared_at + 1) or config.declared_at
  local changed = s.version == 0
  local differs = config.declared ~= '' and config.declared ~= s.declared
  if differs and (stamp > s.declared_at or s.declared == '') then
    put('declared', config.declared)
    put('declared_at', stamp)
    changed = true
  end
  if config.override_at > s.override_at then
    put('override', config.override)
    put('override_at', config.override_at)
    changed = true
  end
  if changed then put_settings() end
end

-- The settings in force and where they come from, for a caller that knows an older version of them.
local function describe_config()
  load_origin()
  local values = call('HMGET', HASH, unpack(SETTINGS))
  for i = 1, #SETTINGS do
    values[i] = values[i] or '0'
  end
  local origin = { s.declared, int(s.declared_at), s.override, int(s.override_at) }
  return table.concat(values, ' ') .. '|' .. table.concat(origin, '|')
end
