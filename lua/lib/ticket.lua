-- ticket: what has become of `ticket`, as `answer` (see ask).

--@include flush
local place, its_fence = string.match(call('HGET', HASH, ticket) or '', '^(%x+)=?(%d*)')
if not place then
  answer = 'n'
elseif its_fence ~= '' then
  answer = format('g%s,%d', its_fence, tonumber(place, 16))
else
  local position = call('ZRANK', QUEUE, ticket) + 1
  -- Milliseconds until it is likely served: as many hold times as there are rounds of the limit before it (Little's
  -- law, with the mean of hold time times cost); -1 when nothing is known yet.
  answer = format('q%d,%d,%d', tonumber(place, 16), position,
    hold > 0 and limit > 0 and floor(position * hold / limit / 1000) or -1)
end
