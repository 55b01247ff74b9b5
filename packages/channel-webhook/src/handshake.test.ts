import { hmacSha256 } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { createWebhook } from './webhook.ts'

const SECRET = 'a plain secret'
const url = (query = '') => new URL(`http://localhost/webhook/channel${query}`)
const hook = createWebhook({ secret: SECRET, handshakes: ['head', 'parameter', 'secret', 'challenge'] })
const silent = createWebhook({ secret: SECRET })

function signed(body: string) {
  const headers = { 'x-webhook-signature': `sha256=${hmacSha256(SECRET, body).toString('hex')}` }
  return { headers, url: url(), body: new TextEncoder().encode(body), receivedAtMs: 0 }
}

test('answers the configured checks of the address before anything is verified', async () => {
  expect(await hook.handshake?.(url('?challenge=c-1')).text()).toBe('c-1')
  expect(hook.handshake?.(url()).status).toBe(200)
  expect(hook.handshake?.(url('?other=1')).status).toBe(400)
  expect(await hook.contact?.({ method: 'POST', url: url('?validationToken=v'), headers: new Headers() })?.text()).toBe('v')
  const answer = hook.contact?.({ method: 'POST', url: url(), headers: new Headers({ 'x-hook-secret': 's' }) })
  expect(answer?.headers.get('x-hook-secret')).toBe('s')
  expect(hook.contact?.({ method: 'POST', url: url(), headers: new Headers() })).toBeUndefined()
})

test('answers a challenge in a signed body, and reads no message in it', async () => {
  const raw = signed('{"challenge":"c-1"}')
  expect(hook.verify(raw)).toEqual({ by: 'x-webhook-signature' })
  expect(await hook.parse(raw)).toEqual([])
  expect(await (await hook.answer?.(raw))?.json()).toEqual({ challenge: 'c-1' })
  const message = signed('{"id":"m-1","sender":"ada","content":"hi"}')
  expect([await hook.parse(message), hook.answer?.(message)]).toMatchObject([[{ text: 'hi' }], undefined])
})

test('answers none unless the section names it', () => {
  expect([silent.handshake, silent.contact, silent.answer]).toEqual([undefined, undefined, undefined])
})
