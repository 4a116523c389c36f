// Adds buttons that copy texts, and refreshes the sections of a page that show work in progress. Every page works without it.
'use strict';

// The time between two refreshes, in milliseconds.
const REFRESH_INTERVAL = 5000;

// Adds a button to each element with a text to copy. The attribute contains the name of the text.
function addCopyButtons(root) {
  for (const element of root.querySelectorAll('[data-copy]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', `Copy ${element.dataset.copy}`);
    const status = document.createElement('span');
    status.className = 'copied';
    status.setAttribute('role', 'status');
    button.addEventListener('click', async () => {
      status.textContent = '';
      try {
        await copy(element.matches('form') ? revealed(element) : shown(element));
        status.textContent = 'Copied.';
      } catch {
        status.textContent = 'Copying failed. Open the page again.';
      }
    });
    element.append(button, status);
  }
}

// Copies a text that has not been received yet. Browsers only allow this if copying starts with the click.
function copy(text) {
  return navigator.clipboard.write([new ClipboardItem({ 'text/plain': text })]);
}

// Submits the form that reveals a field, and returns the field, which no page shows.
async function revealed(form) {
  const response = await fetch(form.action, {
    method: 'POST',
    body: new URLSearchParams(new FormData(form)),
    headers: { Accept: 'text/plain' },
    mode: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return new Blob([await response.arrayBuffer()], { type: 'text/plain' });
}

async function shown(element) {
  return new Blob([element.querySelector('pre').textContent], { type: 'text/plain' });
}

// Replaces each section that shows work in progress with its current state.
async function refresh() {
  const response = await fetch(location.href, { mode: 'same-origin', cache: 'no-store', redirect: 'manual' });
  // The session has ended. The login page would start another one if the user is still logged in at the identity provider.
  if (response.type === 'opaqueredirect') location.replace('/console/logged-out');
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  if (canCopy) addCopyButtons(page);
  for (const section of document.querySelectorAll('[data-live]')) {
    const current = page.getElementById(section.id);
    const isInUse = section.contains(document.activeElement);
    if (current && !isInUse && !current.isEqualNode(section)) section.replaceWith(current);
  }
}

function refreshLater() {
  setTimeout(async () => {
    // Another attempt follows if the server does not respond.
    if (!document.hidden) await refresh().catch(() => {});
    if (document.querySelector('[data-live]')) refreshLater();
  }, REFRESH_INTERVAL);
}

const canCopy = Boolean(navigator.clipboard?.write && window.ClipboardItem);
if (canCopy) addCopyButtons(document);
if (document.querySelector('[data-live]')) refreshLater();
