-- reply: `answer`, in brief if that says all.

if same then return mine == '' and answer or answer .. ' ' .. mine end
return { 'ok', epoch, mine, version, answer }
