// What the pages gain by script. Each works without it.

// Buttons with data-copy put the text of the element that they name onto the
// clipboard. Without script they do not show: the text can be marked by hand.
for (const button of document.querySelectorAll('button[data-copy]')) {
  if (!navigator.clipboard) continue; // browsers give it to pages by https alone
  button.hidden = false;
  button.addEventListener('click', async () => {
    const label = button.textContent;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

// Elements with data-key are pressed by that key, unless the user types text or
// holds a modifier. A summary opens its form, and the cursor goes into it.
for (const hint of document.querySelectorAll('[data-script]')) hint.hidden = false;
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest('input, textarea, select, [contenteditable]')) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!target || target.disabled) return;
  event.preventDefault();
  target.click();
  const text = target.closest('details[open]')?.querySelector('textarea');
  if (text) addEventListener('keyup', () => text.focus(), { once: true }); // later, so that the key is not typed into it
});

// The title of the page shows how many drafts wait for approval. A page that is not
// looked at also shows a notification, if the user allows it.
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
