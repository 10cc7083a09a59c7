-- configure: an operator's settings, which stand above what opens declare until they are reset.
-- ARGV  7 "1" to forget all earlier ones first  8.. limit, max_queue, max_wait, lease, max_hold, idle, paused:
--       "" leaves it, "-" forgets it, a number sets it (milliseconds)
-- Answer: ok

local stopped = enter(true, false, false)
if stopped then return stopped end
local override = words(ARGV[7] == '1' and '' or call('HGET', HASH, 'override') or '')
for i = 1, #SETTINGS do
  local change = ARGV[7 + i]
  override[i] = change ~= '' and change or override[i] or '-'
end
local text = table.concat(override, ' ')
put('override', text)
put('override_at', max(s.now, tonumber(call('HGET', HASH, 'override_at') or 0) + 1))
put_settings(call('HGET', HASH, 'declared') or '', text)
dispatch()
return answer('ok', finish())
