-- record: writes the caller's record, see load. It has just been heard of, so that nobody suspects it any more.

call('HSET', HASH, 'i:' .. ME, struct.pack('<ddd', my_expiry, told, 0) .. HEADER)
