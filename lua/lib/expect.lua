-- expect: whom a new epoch waits for. Who held or waited here and was alive when this state was last written, of the
-- oldest thousand tickets; and who is waited for already, since an epoch before.

do
  local owners = {}
  for _, key in ipairs({ HELD, QUEUE }) do
    for _, ticket in ipairs(call('ZRANGE', key, 0, 1023)) do
      owners[string.match(ticket, '^(.-):') or ticket] = true
    end
  end
  local alive = format('%d', before >= calm and before or excused)
  for _, name in ipairs(call('ZRANGEBYSCORE', INSTANCES, alive, '(+inf', 'LIMIT', 0, 1024)) do
    if owners[name] or call('HEXISTS', HASH, 'i:' .. name) == 0 then expected[#expected + 1] = name end
  end
end
