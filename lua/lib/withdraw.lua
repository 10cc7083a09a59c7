-- withdraw: of the cancel of `ticket`, which has `value`: out of the queue, or the grant that crossed the cancel is given
-- back. Sets `answer` to what it was: q (queued) | h (held) | n (none).

--@include flush
if value and call('HDEL', HASH, ticket) == 1 then
  if call('ZREM', QUEUE, ticket) == 1 then
    waiting = waiting - 1
    answer = 'q'
  else
    if call('ZREM', HELD, ticket) == 0 then torn = 1 end
    used, holding = max(0, used - (tonumber(string.match(value, '^%S+ (%d+)')) or 1)), holding - 1
    answer = 'h'
  end
else
  call('HDEL', HASH, '-')
  answer = 'n'
end
