// Shows the contract that this server serves, and lets users try its operations
// on this server.
'use strict';

const dark = matchMedia('(prefers-color-scheme: dark)');
const colour = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', colour);
colour();

// The address before /docs, which a proxy may have put a path in front of.
const base = new URL('..', document.baseURI).href.replace(/\/$/, '');

async function show() {
  const response = await fetch(`${base}/openapi.json`);
  if (!response.ok) throw new Error(`openapi.json: status ${response.status}`);
  const spec = await response.json();
  // Calls go to the server of the page: the policy of the page does not allow
  // another one.
  spec.servers = [{ url: base }];
  SwaggerUIBundle({
    spec,
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    persistAuthorization: false, // a key is forgotten with the page
    validatorUrl: null,
  });
}

show().catch((fault) => {
  const note = document.createElement('p');
  note.className = 'note';
  note.textContent = `The contract cannot be shown: ${fault.message}.`;
  document.getElementById('reference').replaceChildren(note);
});
