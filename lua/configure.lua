-- configure: an operator's settings, which stand above what opens declare until they are reset.
-- ARGV  7 "1" to forget all earlier ones first  8.. limit, max_queue, max_wait, lease, max_hold, idle, paused:
--       "" leaves it, "-" forgets it, a number sets it (milliseconds)
-- Answer: ok

local stopped = enter(true, false, false)
if stopped then return stopped end
load_origin()
local override = words(ARGV[7] == '1' and '' or s.override)
for i = 1, #SETTINGS do
  local change = ARGV[7 + i]
  override[i] = change ~= '' and change or override[i] or '-'
end
put('override', table.concat(override, ' '))
put('override_at', max(s.now, s.override_at + 1))
put_settings()
dispatch()
return answer('ok', finish())
