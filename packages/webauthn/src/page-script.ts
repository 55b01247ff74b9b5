/** The source of the script of the sign-in page. */

export const SCRIPT = `
'use strict'
const $ = (id) => document.getElementById(id)

const say = (text, failed) => {
  $('status').textContent = text
  $('status').dataset.failed = failed ? 'yes' : 'no'
}

const post = async (path, body, token) => {
  const headers = { 'content-type': 'application/json' }
  if (token) headers.authorization = 'Bearer ' + token
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error)
  return answer
}

const onClick = (id, work) =>
  $(id).addEventListener('click', async () => {
    $(id).disabled = true
    say('Waiting …')
    try {
      say(await work())
    } catch (error) {
      say(error.message, true)
    } finally {
      $(id).disabled = false
    }
  })

onClick('sign-in', async () => {
  $('signed-in').hidden = true
  const { public_key } = await post('passkey/start', {})
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(public_key)
  const credential = await navigator.credentials.get({ publicKey })
  const answer = await post('passkey/finish', credential.toJSON())
  $('token').value = answer.token
  $('expires').textContent = new Date(answer.expires_at).toLocaleString()
  $('signed-in').hidden = false
  return 'Signed in as ' + answer.user_id
})

onClick('register', async () => {
  const token = $('bearer').value.trim()
  const user = $('user').value.trim()
  const label = $('label').value.trim() || undefined
  const { public_key } = await post('api/webauthn/register/start', { user_id: user, user_name: user }, token)
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(public_key)
  const credential = await navigator.credentials.create({ publicKey })
  const answer = await post('api/webauthn/register/finish', { ...credential.toJSON(), label }, token)
  return 'Registered: ' + answer.label
})

$('copy').addEventListener('click', () => navigator.clipboard.writeText($('token').value))

const { origin } = document.documentElement.dataset
if (location.origin !== origin) say('Passkeys work at ' + origin + ' only: open this page there.', true)
else if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) say('This browser is too old for this page.', true)
`
