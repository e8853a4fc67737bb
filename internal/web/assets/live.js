// What changes while a page is open. An element with data-live names a
// stream of events; when one comes, the page is asked for again and the parts of
// it that are marked are put in the place of the old ones. A tab that is not looked
// at has no stream, so that many tabs take none from each other.

const page = location.href; // reader.js shows the address of an open message
const live = document.querySelector('[data-live]');
let source, waiting;

// shown is each part as the server sent it, before the script changed times in it.
const shown = new WeakMap();
for (const part of document.querySelectorAll('[data-live-part]')) shown.set(part, part.outerHTML); // this script runs first

function listen() {
  if (!live || source || document.visibilityState !== 'visible') return;
  source = new EventSource(live.dataset.live);
  for (const type of new URL(live.dataset.live, location).searchParams.get('events').split(',')) {
    source.addEventListener(type, soon);
  }
  source.addEventListener('stream.gap', soon);
  source.addEventListener('open', soon); // something may have come before the stream
}

function stop() {
  source?.close();
  source = undefined;
}

// soon waits a moment: events often come together.
function soon() {
  waiting ??= setTimeout(() => {
    waiting = undefined;
    refresh().catch(() => {}); // the next event is another chance
  }, 150);
}

async function refresh() {
  const response = await fetch(page, { headers: { Accept: 'text/html' } });
  if (!response.ok || response.redirected) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const part of document.querySelectorAll('[data-live-part]')) {
    const now = fresh.querySelector(`[data-live-part="${part.dataset.livePart}"]`);
    if (!now || now.outerHTML === (shown.get(part) ?? part.outerHTML)) continue;
    if (part.querySelector('[type=checkbox]:checked')) continue; // the user is selecting
    if (part.dataset.liveOnce !== undefined) { // is read right now: only say that there is more
      document.querySelector('[data-live-more]').hidden = false;
      continue;
    }
    const focus = part.contains(document.activeElement) && document.activeElement.getAttribute('href');
    shown.set(now, now.outerHTML);
    part.replaceWith(document.adoptNode(now));
    now.dispatchEvent(new Event('postroom:fresh', { bubbles: true })); // app.js improves it
    if (focus) now.querySelector(`a[href="${CSS.escape(focus)}"]`)?.focus();
  }
}

document.addEventListener('visibilitychange', () => (document.visibilityState === 'visible' ? listen() : stop()));
addEventListener('pagehide', stop);
addEventListener('pageshow', listen);
listen();
