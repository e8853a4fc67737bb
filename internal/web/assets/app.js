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
