-- write: `text` is what is to be known of the ticket `name`, from the end of the call on (see flush).

if writes then
  writes[#writes + 1] = name
  writes[#writes + 1] = text
else
  writes = { name, text }
end
