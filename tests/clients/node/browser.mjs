// A scripted browser for logins: `node browser.mjs USER PAGE`. Follows redirections, and submits each form, with the user's
// name in the login field. Prints the text of the last page: a page without a form, or the page that another one opens.

const [user, page] = process.argv.slice(2);

const STEPS_MAX = 20;
const cookies = new Map();

async function request(url, options = {}) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const headers = { ...options.headers, cookie };
  const response = await fetch(url, { ...options, headers, redirect: 'manual' });
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
    cookies.set(name, value);
  }
  return response;
}

function attribute(tag, name) {
  const found = tag.match(new RegExp(`\\b${name}="([^"]*)"`));
  return found?.[1].replaceAll('&amp;', '&');
}

/// The first form of a page, filled in.
function form(html) {
  const [found] = html.match(/<form[^]*?<\/form>/) ?? [];
  if (!found) return undefined;
  const fields = new URLSearchParams();
  for (const [tag] of found.matchAll(/<input[^>]*>/g)) {
    const name = attribute(tag, 'name');
    const typed = { login: user, password: 'any' }[name];
    if (name) fields.set(name, typed ?? attribute(tag, 'value') ?? '');
  }
  return { action: attribute(found, 'action'), fields };
}

const text = (html) => html.replaceAll(/<style[^]*?<\/style>|<[^>]*>/g, ' ').trim();

let url = new URL(page);
let response = await request(url);
for (let step = 0; step < STEPS_MAX; step += 1) {
  const location = response.headers.get('location');
  if (location) {
    url = new URL(location, url);
    response = await request(url);
    continue;
  }
  const html = await response.text();
  const [, opened] = html.match(/<meta http-equiv="refresh" content="0; url=([^"]*)"/) ?? [];
  if (opened) {
    response = await request(new URL(opened.replaceAll('&amp;', '&'), url));
    console.log(response.status, text(await response.text()));
    process.exit(response.ok ? 0 : 1);
  }
  const next = form(html);
  if (!next) {
    console.log(response.status, text(html));
    process.exit(response.ok ? 0 : 1);
  }
  url = new URL(next.action, url);
  response = await request(url, { method: 'POST', body: next.fields });
}
console.error(`the login is not complete after ${STEPS_MAX} steps, at ${url}`);
process.exit(1);
