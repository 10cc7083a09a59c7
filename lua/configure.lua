-- configure: an operator's settings, which stand above what opens declare until they are reset.
-- ARGV  4 "1" to forget all earlier ones first  5.. limit, max_queue, max_wait, lease, max_hold, idle, paused:
--       "" leaves it, a number sets it (milliseconds)
-- Answer: ok

--@include load
local frees, strict, joins, thorough = true, false, false, true
--@include enter

call('HDEL', HASH, '-')
do
  --@include config
  local list = words(ARGV[4] == '1' and '' or override)
  for i = 1, 7 do
    local change = ARGV[4 + i]
    list[i] = change ~= '' and change or list[i] or '-'
  end
  override, override_at = table.concat(list, ' '), max(now, override_at + 1)
  put_config()
end

--@include dispatch
--@include finish
return { 'ok', epoch, mine, version }
