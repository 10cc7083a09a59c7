-- position: where tickets stand in line. Writes nothing.
-- ARGV  4.. tickets
-- Answer: ok, then two for each: position (1: next; 0: not waiting), estimate in milliseconds (-1: unknown)

--@include load
if not exists then return { 'none', epoch, '', version } end
local rows = { 'ok', epoch, '', version }
for i = 4, #ARGV do
  local rank = call('ZRANK', QUEUE, ARGV[i])
  rows[#rows + 1] = rank and rank + 1 or 0
  rows[#rows + 1] = rank and hold > 0 and limit > 0 and floor((rank + 1) * hold / limit / 1000) or -1
end
return rows
