-- remind: tells the caller once more what it holds, of the oldest thousand. A command of an older connection may have
-- come through when its instance was forgotten here, and its generation with it; the answer to that went nowhere, and
-- left alone, the slot would be lost for as long as the instance lives. Who does not know a ticket gives it back.

do
  local prefix = ME .. ':'
  local page = call('ZRANGE', HELD, 0, 1023, 'WITHSCORES')
  for i = 1, #page, 2 do
    if string.sub(page[i], 1, #prefix) == prefix then
      local place = tonumber(string.match(call('HGET', HASH, page[i]) or '0', '^%x+'), 16)
      local word = format('g,%s,%d,%d', string.sub(page[i], #prefix + 1), tonumber(page[i + 1]), place)
      mine = mine == '' and word or mine .. ' ' .. word
    end
  end
end
