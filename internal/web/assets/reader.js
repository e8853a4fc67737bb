// The reading pane beside a list of messages, and the keys that move in lists. An open
// message has its own address, which shows its page when it is loaded again; going
// back closes the pane.

const wide = matchMedia('(min-width: 75rem)');
const reader = document.querySelector('[data-reader]');
let pane, shown;

// A link of a message opens in the pane; other links open their own page.
const opens = /^\/(inboxes\/[^/]+\/threads\/[^/]+|messages\/[^/]+)$/;

// rows returns the links of the rows of the list.
const rows = () => [...document.querySelectorAll('main .messages > li > .line > a, main table.list a.main-link')];

// target returns the path of the message that a link opens in the pane, or ''.
function target(link) {
  if (!reader || !wide.matches || !link || link.download || link.target) return '';
  const url = new URL(link.href, location);
  return url.origin === location.origin && opens.test(url.pathname) ? url.pathname + url.search + url.hash : '';
}

// show loads a page of a message into the pane.
async function show(path, row) {
  if (history.state?.path !== path) history[pane ? 'replaceState' : 'pushState']({ path }, '', path);
  if (!pane) {
    pane = document.createElement('section');
    pane.className = 'pane';
    pane.tabIndex = -1;
    pane.setAttribute('aria-label', 'Message');
    reader.append(pane);
  }
  shown = path;
  if (row) mark(row);
  const response = await fetch(path, { headers: { Accept: 'text/html' } });
  if (!response.ok || response.redirected) return void location.assign(path);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  if (shown !== path) return; // another one was opened meanwhile
  const main = page.querySelector('main');
  main.querySelector('.back')?.remove();
  for (const heading of main.querySelectorAll('h1')) { // the list has the heading of the page
    const second = page.createElement('h2');
    second.className = 'subject';
    second.dir = 'auto';
    second.append(...heading.childNodes);
    heading.replaceWith(second);
  }
  const bar = page.createElement('div');
  bar.className = 'row pane-bar';
  bar.innerHTML = '<a class="button quiet small">Open page</a><button type="button" class="quiet small">Close</button>';
  bar.firstChild.href = path;
  bar.firstChild.dataset.page = '1';
  bar.lastChild.addEventListener('click', leave);
  pane.replaceChildren(bar, ...[...main.children].map((child) => document.adoptNode(child)));
  reader.classList.add('split');
  pane.scrollTop = 0;
  pane.dispatchEvent(new Event('postroom:fresh', { bubbles: true }));
  const at = new URL(path, location).hash.slice(1);
  const letter = at && document.getElementById(at);
  if (letter) {
    letter.open = true;
    pane.scrollTop = letter.offsetTop - pane.offsetTop - 60;
  }
  row?.scrollIntoView({ block: 'nearest' });
  const item = row?.closest('li'); // the page of the message noted that it is read
  item?.classList.remove('unread');
  item?.querySelector('[data-unread]')?.remove();
}

// leave closes the pane by going back in the history, so that there is one way.
const leave = () => history.back();

function close() {
  shown = undefined;
  pane?.remove();
  pane = undefined;
  reader.classList.remove('split');
  current()?.focus();
}

// current returns the link of the row that is open or has the focus.
const current = () => rows().find((a) => a.closest('li, tr').classList.contains('current'))
  ?? rows().find((a) => a.closest('li, tr').contains(document.activeElement));

function mark(link) {
  for (const row of document.querySelectorAll('main .current')) row.classList.remove('current');
  link?.closest('li, tr').classList.add('current');
}

if (reader) {
  addEventListener('popstate', ({ state }) => {
    const path = state?.path;
    if (path && path !== shown) show(path, rows().find((a) => target(a) === path)).catch(() => location.assign(path));
    else if (!path && pane) close();
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.('main a');
    const path = link?.dataset.page ? '' : target(link);
    if (!path) return;
    event.preventDefault();
    show(path, link.closest('.messages') ? link : undefined).catch(() => location.assign(path));
  });
  // The list was updated: its open row is marked again, and a new message of the
  // open thread is announced, as on its own page.
  document.addEventListener('postroom:fresh', (event) => {
    if (!pane || pane.contains(event.target)) return;
    const path = new URL(shown, location).pathname;
    mark(rows().find((a) => new URL(a.href).pathname === path));
    const known = pane.querySelector('[data-live-part=latest]')?.textContent;
    if (known === undefined) return;
    fetch(path, { headers: { Accept: 'text/html' } }).then((response) => response.text()).then((text) => {
      const now = new DOMParser().parseFromString(text, 'text/html').querySelector('[data-live-part=latest]')?.textContent;
      const more = pane?.querySelector('[data-live-more]');
      if (more && now !== undefined && now !== known) more.hidden = false;
    }).catch(() => {}); // the next event is another chance
  });
}

// move goes to another row and, beside an open pane, opens it.
function move(by) {
  const all = rows(), at = all.indexOf(current());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (!next) return;
  mark(next);
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: 'nearest' });
  if (pane) show(target(next), next).catch(() => {});
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select, dialog[open], [contenteditable]')) return;
  if (document.querySelector(`main [data-key="${CSS.escape(event.key)}"]`)) return; // app.js presses it
  switch (event.key) {
    case 'j': move(1); break;
    case 'k': move(-1); break;
    case 'o': (current() ?? rows()[0])?.click(); break;
    case 'x': current()?.closest('li, tr').querySelector('[type=checkbox]')?.click(); break;
    case 'Escape': if (pane) leave(); break;
    default: return;
  }
  event.preventDefault();
});
