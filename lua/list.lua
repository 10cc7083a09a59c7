-- list: a page of the holders (by fence) or of the waiters (in line order). Brings the limiter up to date first, so that
-- the dead are not shown.
-- ARGV  4 "held" | "queue"  5 offset  6 count
-- Answer: ok, then six for each: ticket, description of its instance, label, cost, order, fence (0: waiting), and the
--       server's time in microseconds last

--@include load
local frees, strict, joins, thorough = true, false, false, true
--@include enter

call('HDEL', HASH, '-')
--@include dispatch
--@include finish
local held = ARGV[4] == 'held'
local from = tonumber(ARGV[5])
local page = call('ZRANGE', held and HELD or QUEUE, from, from + tonumber(ARGV[6]) - 1, 'WITHSCORES')
local rows = { 'ok', epoch, mine, version }
for i = 1, #page, 2 do
  local ticket = page[i]
  if ticket ~= '.' then
    local place, cost, label = string.match(call('HGET', HASH, ticket) or '0', '^(%x+)=?%d* ?(%d*) ?(.*)$')
    local description = call('HGET', HASH, 'd:' .. string.match(ticket, '^(.-):')) or ''
    local its_fence = held and tonumber(page[i + 1]) or 0
    for _, cell in ipairs({ ticket, description, label, tonumber(cost) or 1, tonumber(place, 16), its_fence }) do
      rows[#rows + 1] = cell
    end
  end
end
rows[#rows + 1] = now
return rows
