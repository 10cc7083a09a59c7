// Server-sent events over fetch(). Unlike EventSource it can be stopped, does not come back by itself, and sees refusals:
// those come with a status of 429 or 503.

/** Asks, and yields the events of the answer: {name, data}. */
export async function* ask(url, signal) {
  const response = await fetch(url, { headers: { Accept: "text/event-stream" }, signal });
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) throw new Error(`the server answered ${response.status}`);
  yield* events(response.body.pipeThrough(new TextDecoderStream()).getReader());
}

/** The events in a stream of text, wherever that is cut. */
async function* events(reader) {
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop(); // not yet whole
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
      if (fields.event) yield { name: fields.event, data: JSON.parse(fields.data) };
    }
  }
}
