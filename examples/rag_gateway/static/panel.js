// The panel beside the question: how the limiter stands, for all who use it.

const PAUSE = 600; // milliseconds between two looks
const LONGEST = 48; // places of the line that are drawn

export function showPanel($) {
  const panel = document.querySelector("aside");

  async function look() {
    try {
      const response = await fetch("/status");
      if (!response.ok) throw new Error(response.status);
      draw(await response.json());
      panel.classList.remove("stale");
    } catch {
      panel.classList.add("stale");
    }
  }

  function draw({ limit, running, waiting, max_queue, estimate, processes }) {
    $("running").textContent = running;
    $("limit").textContent = limit;
    $("in-line").textContent = waiting;
    $("of-queue").textContent = max_queue === null ? "" : ` of ${max_queue}`;
    $("newcomer").textContent = newcomer(running < limit && waiting === 0, estimate);
    $("processes").textContent = processes;
    marks($("slots"), Math.max(limit, running), running, `${running} of ${limit} slots are taken`);
    marks($("line"), Math.min(max_queue ?? waiting, LONGEST), waiting, `${waiting} in line`);
    const place = $("exchange").dataset.place;
    [...$("line").children].forEach((mark, number) => mark.classList.toggle("you", number + 1 === Number(place)));
  }

  $("more").addEventListener("click", async () => {
    $("more").disabled = true;
    await fetch("/askers", { method: "POST" }).catch(() => {});
    $("more").disabled = false;
    look();
  });

  // One look after the other, and none while nobody sees them.
  (async function watch() {
    if (!document.hidden) await look();
    setTimeout(watch, PAUSE);
  })();
}

/** So many marks, of which the first are taken. */
function marks(box, count, taken, meaning) {
  while (box.children.length > count) box.lastChild.remove();
  while (box.children.length < count) box.appendChild(document.createElement("span"));
  [...box.children].forEach((mark, number) => mark.classList.toggle("taken", number < taken));
  box.setAttribute("aria-label", meaning);
}

function newcomer(free, estimate) {
  if (free) return "none";
  return estimate === null ? "not known" : `about ${Math.max(1, Math.round(estimate))} s`;
}
