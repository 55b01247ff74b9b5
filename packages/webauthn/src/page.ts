/** The sign-in page: one document that loads nothing. Its content security policy allows its own script and style by hash. */
import { hash } from 'node:crypto'
import type { WebauthnConfig } from './config.ts'
import { SCRIPT } from './page-script.ts'

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 28rem; margin: 10vh auto; padding: 0 1rem }
h1 { font-size: 1.4rem }
button, input { font: inherit; padding: .5rem .8rem; border-radius: .4rem; border: 1px solid #8888 }
button { cursor: pointer }
label { display: block; margin: .6rem 0 }
input, textarea { display: block; width: 100%; box-sizing: border-box }
textarea { font: .85rem/1.4 ui-monospace, monospace; margin: .6rem 0 }
details { margin-top: 2rem }
[data-failed="yes"] { color: #c33 }
`

const sourceOf = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`

/** Returns the page with its content security policy. */
export function page({ rp_name, rp_origin }: WebauthnConfig): Response {
  const policy = [
    "default-src 'none'",
    `script-src ${sourceOf(SCRIPT)}`,
    `style-src ${sourceOf(STYLE)}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }
  return new Response(html(escaped(rp_name), escaped(rp_origin)), { headers })
}

const html = (name: string, origin: string): string => `<!doctype html>
<html lang="en" data-origin="${origin}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${name}: sign in</title>
<style>${STYLE}</style>
<h1>Sign in to ${name}</h1>
<button id="sign-in" type="button">Sign in with a passkey</button>
<p id="status" role="status"></p>
<div id="signed-in" hidden>
<label>Your token, valid until <span id="expires"></span>. Copy it now: it is not shown again.
<textarea id="token" rows="3" readonly></textarea></label>
<button id="copy" type="button">Copy</button>
</div>
<details>
<summary>Register a passkey</summary>
<p>You need the token of a paired device.</p>
<label>Token <input id="bearer" type="password" autocomplete="off"></label>
<label>User <input id="user" maxlength="64" autocomplete="off"></label>
<label>Name of the passkey <input id="label" maxlength="64" autocomplete="off" placeholder="Hardware Key"></label>
<button id="register" type="button">Register</button>
</details>
<script>${SCRIPT}</script>
</html>
`

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
