// Remembers the language of the examples, and adds buttons that copy them.
'use strict';

const tabs = [...document.querySelectorAll('aside input[type=radio]')];
const remembered = localStorage.getItem('language');
for (const tab of tabs) {
  if (tab.dataset.language === remembered) tab.checked = true;
  tab.addEventListener('change', () => localStorage.setItem('language', tab.dataset.language));
}

for (const pre of document.querySelectorAll('pre')) {
  if (!navigator.clipboard) break; // the page is not on a secure origin
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(pre.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  pre.append(button);
}

// The menu is closed on a phone, and shows the current page elsewhere.
const menu = document.querySelector('.menu');
if (matchMedia('(max-width: 60rem)').matches) menu.open = false;
const current = menu.querySelector('[aria-current]');
if (current && current.offsetTop > menu.clientHeight) menu.scrollTop = current.offsetTop - menu.clientHeight / 2;

addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea')) return;
  event.preventDefault();
  document.querySelector('[type=search]').focus();
});
