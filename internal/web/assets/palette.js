// The palette that goes anywhere, and the help about keys. Both are dialogs of the
// layout. Without a script the page /go does the same as the palette.

const palette = document.getElementById('palette'), keys = document.getElementById('keys');
const input = palette?.querySelector('input'), list = palette?.querySelector('ul');
let asked = 0;

// ask shows what the server finds for the text.
async function ask() {
  const mine = ++asked;
  const response = await fetch(`/go?q=${encodeURIComponent(input.value)}`, { headers: { Accept: 'text/html' } });
  if (!response.ok || mine !== asked) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  if (mine !== asked) return; // a later response came first
  list.replaceChildren(...[...page.querySelectorAll('.go li')].map((li) => document.adoptNode(li)));
  choose(0);
}

const links = () => [...list.querySelectorAll('a')];

function choose(at) {
  const all = links();
  for (const [i, a] of all.entries()) {
    a.parentElement.classList.toggle('current', i === at);
    if (i === at) a.scrollIntoView({ block: 'nearest' });
  }
}

if (palette) {
  const open = () => {
    if (palette.open) return void palette.close();
    keys.close();
    palette.showModal();
    input.select();
    ask().catch(() => {}); // the pages of the menu are still there
  };
  let later;
  input.addEventListener('input', () => {
    clearTimeout(later);
    later = setTimeout(() => ask().catch(() => {}), 80);
  });
  palette.addEventListener('keydown', (event) => {
    const all = links(), at = all.findIndex((a) => a.parentElement.classList.contains('current'));
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      choose((at + (event.key === 'ArrowDown' ? 1 : all.length - 1)) % Math.max(all.length, 1));
    } else if (event.key === 'Enter' && all[at]) {
      event.preventDefault();
      all[at].click();
    }
  });
  for (const dialog of [palette, keys]) {
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); }); // beside it
  }
  document.addEventListener('keydown', (event) => {
    if ((event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      open();
    } else if (event.key === '?' && !event.target.closest('input, textarea, select, dialog[open], [contenteditable]')) {
      event.preventDefault();
      keys.showModal();
    }
  });
  document.querySelector('[data-go]')?.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  document.querySelector('[data-keys]')?.addEventListener('click', () => keys.showModal());
  if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of document.querySelectorAll('kbd.mod')) key.textContent = '⌘';
}
