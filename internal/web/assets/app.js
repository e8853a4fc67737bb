// Improvements of the pages by script. Each page works without them.

// enhance improves the elements below root: the page, or a part that live.js put
// into it.
function enhance(root) {
  // Buttons with data-copy copy the text of the element with that id. Without a
  // script they are hidden, because users can select the text.
  for (const button of root.querySelectorAll('button[data-copy]')) {
    if (!navigator.clipboard) continue; // browsers offer it on https and localhost only
    button.hidden = false;
    button.addEventListener('click', async () => {
      const label = button.textContent;
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  }
  for (const hint of root.querySelectorAll('[data-script]')) hint.hidden = false;
  for (const field of root.querySelectorAll('[data-filter]')) {
    field.addEventListener('input', () => {
      const words = field.value.trim().toLowerCase();
      for (const choice of document.getElementById(field.dataset.filter).children) {
        choice.hidden = !choice.textContent.toLowerCase().includes(words) && !choice.querySelector(':checked');
      }
    });
    field.addEventListener('keydown', (event) => { if (event.key === 'Enter') event.preventDefault(); });
  }
  for (const frame of root.querySelectorAll('iframe.document')) {
    frame.addEventListener('load', () => fit(frame));
    if (frame.contentDocument?.readyState === 'complete') fit(frame);
    widths.observe(frame.parentElement);
  }
  tellTimes(root);
}

// The seconds that are left to undo an approval; the form goes with the last one.
for (const left of document.querySelectorAll('[data-countdown]')) {
  setInterval(() => (left.textContent > 1 ? left.textContent-- : left.closest('form')?.remove()), 1000);
}

// fit makes a frame as high as its message, and scales a message that is wider
// than the page. The document in the frame runs no scripts; the page only reads
// its size. A document that cannot be read keeps the height of the style sheet.
const highest = 30000;
function fit(frame) {
  const doc = frame.contentDocument;
  if (!doc?.body || doc.URL === 'about:blank' || !frame.parentElement.clientWidth) return;
  const room = frame.parentElement.clientWidth;
  frame.style.cssText = 'min-height:0;max-height:none;resize:none;height:1px';
  const wide = Math.min(doc.documentElement.scrollWidth, 4 * room);
  const scale = wide > room ? room / wide : 1;
  if (scale < 1) frame.style.width = `${wide}px`;
  // A second round fits what depends on the height of the frame.
  let height = 0;
  for (let round = 0; round < 2; round++) {
    const now = Math.min(Math.max(doc.documentElement.scrollHeight, doc.body.scrollHeight), highest);
    if (now <= height) break;
    height = now;
    frame.style.height = `${height}px`;
  }
  if (scale < 1) {
    frame.style.transformOrigin = '0 0';
    frame.style.transform = `scale(${scale})`;
    frame.style.marginBottom = `${Math.round(height * (scale - 1))}px`;
  }
  const note = frame.parentElement.querySelector('[data-unmeasured]');
  if (note) note.hidden = height < highest;
  frame.dataset.fit = `${room}`;
}

// A frame is measured again when its place gets wider or narrower.
const widths = new ResizeObserver((entries) => {
  for (const entry of entries) {
    for (const frame of entry.target.querySelectorAll('iframe.document[data-fit]')) {
      if (frame.dataset.fit !== `${entry.target.clientWidth}`) fit(frame);
    }
  }
});

// The preview of a template follows its form. A new frame each time leaves no history.
const editor = document.querySelector('form[data-preview]');
let typed;
editor?.addEventListener('input', () => {
  clearTimeout(typed);
  typed = setTimeout(() => {
    const old = editor.querySelector('iframe'), frame = old.cloneNode();
    frame.removeAttribute('src');
    old.replaceWith(frame);
    editor.requestSubmit(editor.querySelector('[formtarget]'));
  }, 400);
});

// Times are shown in the user's time zone, and the exact time on hover or tap.
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const moment = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' });
function tellTime(time) {
  const at = new Date(time.dateTime), now = new Date();
  const minutes = Math.floor((now - at) / 60000);
  if (time.dataset.exact) return exactly.format(at);
  if (time.dataset.ago === 'exact') return (at.toDateString() === now.toDateString() ? clock : moment).format(at);
  if (minutes >= 0 && minutes < 1) return 'just now';
  if (minutes >= 0 && minutes < 60) return `${minutes} min ago`;
  if (at.toDateString() === now.toDateString()) return clock.format(at);
  return (at.getFullYear() === now.getFullYear() ? day : date).format(at);
}
function tellTimes(root) {
  for (const time of root.querySelectorAll('time[data-ago]')) {
    const text = tellTime(time);
    if (time.textContent !== text) time.textContent = text;
    time.title = exactly.format(new Date(time.dateTime));
  }
}
setInterval(() => tellTimes(document), 30000);
addEventListener('click', (event) => {
  const time = event.target.closest?.('time[data-ago]');
  if (!time) return;
  const row = time.closest('.messages li')?.querySelector('a');
  if (row) return void row.click();
  time.dataset.exact = time.dataset.exact ? '' : '1';
  time.textContent = tellTime(time);
});

// A form with data-undo is sent after that many seconds, unless the user undoes it, and
// at once when the user leaves the page. What it deletes is hidden meanwhile.
let unsent;
document.addEventListener('submit', (event) => {
  const form = event.target;
  const picked = [...document.querySelectorAll(`[form="${form.id}"]:checked`)];
  unsent?.();
  if (!form.dataset.undo || (form.id && !picked.length)) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form));
  const gone = form.id ? picked.map((box) => box.closest('li, tr')) : [form.closest('.letter')];
  const toast = document.createElement('div');
  toast.className = 'toast';
  toast.innerHTML = '<span role="status"></span><button type="button" class="small">Undo</button>';
  toast.firstChild.textContent = gone.length > 1 ? `${gone.length} messages deleted.` : 'Message deleted.';
  const show = (hidden) => { for (const part of gone) part.hidden = hidden; };
  const end = () => {
    clearTimeout(timer);
    toast.remove();
    unsent = undefined;
  };
  unsent = () => {
    end();
    return fetch(form.action, { method: 'POST', body, keepalive: true, redirect: 'manual' });
  };
  const timer = setTimeout(async () => {
    try {
      await unsent();
    } catch { // the server cannot be reached
      return void show(false);
    }
    location.assign(form.dataset.then);
  }, form.dataset.undo * 1000);
  toast.lastChild.addEventListener('click', () => {
    end();
    show(false);
  });
  show(true);
  form.closest('details').open = false;
  document.body.append(toast);
  toast.lastChild.focus();
});
addEventListener('pagehide', () => unsent?.());
document.addEventListener('click', async (event) => { // the next page must not show what is deleted
  const link = event.target.closest?.('a[href]');
  if (!unsent || !link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  await unsent();
  location.assign(link.href);
}, true);

// A form that is being sent says so, and cannot be sent twice.
addEventListener('submit', (event) => {
  if (event.defaultPrevented) return;
  const button = event.submitter ?? event.target.querySelector('button:not([type=button])');
  if (event.target.method !== 'post' || !button || button.formTarget) return;
  setTimeout(() => { // after the browser has read the form
    button.setAttribute('aria-busy', 'true');
    button.disabled = true;
    if (/^(Send|Reply)/.test(button.textContent.trim())) button.textContent = 'Sending…';
  });
});

// The first field with an error has the focus.
document.querySelector('main [aria-invalid]')?.focus();

// Elements with data-key are pressed by that key, unless the user types text or
// holds a modifier. A summary opens its form, and the cursor goes into it.
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest('input, textarea, select, [contenteditable]')) return;
  const key = `[data-key="${CSS.escape(event.key.toLowerCase())}"]`;
  const target = document.querySelector(`main ${key}`) ?? document.querySelector(key);
  if (!target || target.disabled) return;
  event.preventDefault();
  if (target.matches('input')) target.focus();
  else target.click();
  const text = target.closest('details[open]')?.querySelector('textarea');
  if (text) addEventListener('keyup', () => text.focus(), { once: true }); // later, so that the key is not typed into it
});

// The title of the page shows how many drafts wait for approval. A page that is not
// in view also shows a notification, if the user allows it.
const pending = () => parseInt(document.querySelector('.badge.count:not([hidden])')?.textContent ?? '0', 10) || 0;
const title = document.title;
let known = pending();
function count() {
  const n = pending();
  document.title = n ? `(${n}) ${title}` : title;
  if (n > known && !document.hasFocus() && window.Notification?.permission === 'granted') {
    new Notification('Postroom', { body: n === 1 ? 'A draft waits for approval.' : `${n} drafts wait for approval.`, tag: 'pending' });
  }
  known = n;
}
const nav = document.querySelector('.badge.count')?.closest('nav, ul, a');
if (nav) {
  count();
  new MutationObserver(count).observe(nav, { childList: true, subtree: true, attributes: true });
}
const notify = document.querySelector('[data-notify]');
if (notify && window.Notification?.permission === 'default') {
  notify.hidden = false;
  notify.addEventListener('click', async () => { notify.hidden = await Notification.requestPermission() !== 'default'; });
}

document.addEventListener('postroom:fresh', (event) => enhance(event.target));
enhance(document);
