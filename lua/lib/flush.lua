-- flush: what was left to be written with the state is written now, since somebody wants to read it.

if writes then
  call('HSET', HASH, unpack(writes))
  writes = nil
end
