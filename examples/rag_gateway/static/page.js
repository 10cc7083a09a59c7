import { ask } from "./events.js";
import { showPanel } from "./panel.js";

const $ = (id) => document.getElementById(id);
let stopping = null; // an AbortController while something is asked
let ticking = 0;

// --- Asking

async function begin() {
  stopping?.abort();
  const mine = (stopping = new AbortController());
  const question = $("question").value.trim();
  reset(question);
  try {
    for await (const { name, data } of ask(`/ask?q=${encodeURIComponent(question)}`, mine.signal)) {
      if (stopping === mine) on[name]?.(data);
    }
    if (stopping === mine && state() !== "done") refuseOnce("The answer broke off.", "The connection was lost.", "failed");
  } catch (error) {
    if (stopping === mine) failed(error, mine.signal.aborted);
  } finally {
    if (stopping === mine) end();
  }
}

/** What to do with each event of the server. */
const on = {
  position: ({ position, estimate }) => wait(position, estimate),
  start: () => show("streaming", "The answer begins."),
  sources: ({ passages }) => showSources(passages),
  token: ({ text }) => $("text").append(text),
  done: () => show("done", "The answer is complete."),
  rejected: ({ error, retry_after }) => reject(error, retry_after),
  failed: () => refuse("Something went wrong.", "The answer could not be given.", "failed"),
};

function failed(error, aborted) {
  if (!aborted) return refuseOnce("The server cannot be reached.", `${error.message}.`, "failed");
  const begun = state() === "streaming";
  $("ending").textContent = begun ? "Stopped. The next in line has your slot." : "You left the line.";
  show("stopped", $("ending").textContent);
}

function reset(question) {
  for (const id of ["text", "ending"]) $(id).replaceChildren();
  $("asked").textContent = question;
  showSources([]);
  show("asking", "");
  $("ask").hidden = true;
  $("stop").hidden = false;
}

function end() {
  stopping = null;
  clearInterval(ticking);
  const hadFocus = document.activeElement === $("stop");
  $("ask").hidden = false;
  $("stop").hidden = true;
  if (hadFocus) $("ask").focus();
}

// --- Showing

const state = () => $("exchange").dataset.state;

/** Shows one part of the exchange, and says so to who cannot see it. */
function show(name, spoken) {
  $("exchange").dataset.state = name;
  if (name !== "waiting") delete $("exchange").dataset.place;
  $("answer").setAttribute("aria-busy", name === "streaming");
  if (name !== "waiting") clearInterval(ticking);
  if (spoken) $("status").textContent = spoken;
}

/** The place in line. The estimate comes with each move; between two of them we count down. */
function wait(position, estimate) {
  const due = estimate === null ? null : Date.now() + estimate * 1000;
  $("place").textContent = $("exchange").dataset.place = position;
  $("waiting-title").textContent = `You are number ${position} in line.`;
  const tick = () => ($("estimate").textContent = remaining(due));
  tick();
  show("waiting", `You are number ${position} in line. ${remaining(due)}`);
  clearInterval(ticking);
  ticking = setInterval(tick, 1000);
}

function remaining(due) {
  if (due === null) return "";
  const seconds = Math.ceil((due - Date.now()) / 1000);
  return seconds > 0 ? `About ${inWords(seconds)}.` : "Any moment now.";
}

function inWords(seconds) {
  if (seconds < 100) return seconds === 1 ? "a second" : `${seconds} seconds`;
  return `${Math.round(seconds / 60)} minutes`;
}

const REASONS = {
  queue_full: "We are busy.",
  timed_out: "That took too long.",
  closed: "We are closing for a moment.",
};

function reject(error, retryAfter) {
  const later = retryAfter === null ? "" : `Please try again in about ${inWords(retryAfter)}.`;
  const why = { queue_full: "So many are waiting already that the line is full. ", timed_out: "No slot became free in time. " };
  refuse(REASONS[error] ?? "Not available at the moment.", (why[error] ?? "") + later, "rejected");
}

function refuse(title, text, name) {
  $("notice-title").textContent = title;
  $("notice-text").textContent = text;
  show(name, `${title} ${text}`);
}

/** Unless something was told already. */
function refuseOnce(title, text, name) {
  if (state() !== "rejected" && state() !== "failed") refuse(title, text, name);
}

function showSources(passages) {
  $("source-list").replaceChildren(...passages.map(source));
  $("sources").hidden = passages.length === 0;
}

function source({ title, text }) {
  const item = document.createElement("li");
  const details = item.appendChild(document.createElement("details"));
  details.appendChild(document.createElement("summary")).textContent = title;
  details.appendChild(document.createElement("p")).textContent = text;
  return item;
}

// --- The buttons

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
});
$("stop").addEventListener("click", () => stopping?.abort());
$("again").addEventListener("click", begin);
for (const button of document.querySelectorAll(".suggestions button")) {
  button.addEventListener("click", () => {
    $("question").value = button.textContent;
    begin();
  });
}
showPanel($);
