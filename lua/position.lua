-- position: where tickets stand in line. Writes nothing.
-- ARGV  7.. tickets
-- Answer: ok, then two for each: position (1: next; 0: not waiting), estimate in milliseconds (-1: unknown)

load_state()
if not exists then return answer('none') end
local rows = answer('ok')
for i = 7, #ARGV do
  local rank = call('ZRANK', QUEUE, ARGV[i])
  rows[#rows + 1] = rank and rank + 1 or 0
  rows[#rows + 1] = rank and estimate(rank + 1) or -1
end
return rows
