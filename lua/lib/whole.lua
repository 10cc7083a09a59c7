-- whole: is the limiter what it was? Sets `whole`.

local whole = exists and torn == 0
if thorough or not whole or not same then
  -- A key that was lost shows: its sentinel is gone, or it is not so long as it should be. A key of somebody else's under
  -- our name ends the script here, before anything is written or thrown away.
  local queued, held, there = call('ZCARD', QUEUE), call('ZCARD', HELD), call('ZSCORE', INSTANCES, '.')
  whole = whole and there and queued == waiting + 1 and held == holding + 1
elseif waiting > 0 then
  whole = call('ZCARD', QUEUE) == waiting + 1
end
