-- list: a page of the holders (by fence) or of the waiters (in line order). Writes nothing.
-- ARGV  7 "held" | "queue"  8 offset  9 count
-- Answer: ok, then six for each: ticket, description of its instance, label, cost, order, fence (0: waiting), and the
--       server's time in microseconds last

load_state()
if not exists then return answer('none') end
local held = ARGV[7] == 'held'
local from = tonumber(ARGV[8])
local page = call('ZRANGE', held and HELD or QUEUE, from, from + tonumber(ARGV[9]) - 1, 'WITHSCORES')
local rows = answer('ok')
for i = 1, #page, 2 do
  if page[i] ~= SENTINEL then
    local cost, order, label = unpack_ticket(call('HGET', TICKETS, page[i]))
    local description = call('HGET', HASH, 'd:' .. owner_of(page[i])) or ''
    local row = { page[i], description, label, cost, int(order), held and int(tonumber(page[i + 1])) or '0' }
    for _, cell in ipairs(row) do
      rows[#rows + 1] = cell
    end
  end
end
rows[#rows + 1] = int(s.now)
return rows
