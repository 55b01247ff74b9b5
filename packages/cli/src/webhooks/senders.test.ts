/** `sluice webhook send --path` and `sluice webhook check <path>`, against a server that records the request. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { SENDER_SCHEMES, signProof, verifyProof } from '@sluice/sdk'
import { afterEach, expect, test } from 'vitest'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly url: string
  readonly body: Buffer
}

/** A data directory with a trigger on `/in` that takes the requests of a sender, and a server that answers as the daemon does. */
async function arrange(auth: string) {
  const { dir, dispose } = scratch(`[sop.secrets]\nown = "${SECRET}"\n`)
  cleanups.push(dispose)
  const folder = join(dir, 'sops', 'in')
  mkdirSync(folder, { recursive: true })
  const trigger = `[[triggers]]\ntype = "webhook"\npath = "/in"\nauth = "${auth}"\nsecret = "own"\n`
  writeFileSync(join(folder, 'SOP.toml'), `[sop]\nname = "in"\ndescription = "d"\n${trigger}`)
  writeFileSync(join(folder, 'SOP.md'), '# In\n\n## Steps\n\n1. **One** - Do it.\n')
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    received.push({ headers: request.headers, url: `http://${request.headers.host}${request.url}`, body })
    response.setHeader('content-type', 'application/json')
    response.end('{"status":"accepted","results":[{"sop":"in","status":"started","run_id":"r1"}]}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const run = sluiceWith([])
  return {
    dir,
    received,
    send: (...argv: string[]) => run('webhook', 'send', '--path', '/in', '--url', url, ...argv, '--data-dir', dir),
    check: (...argv: string[]) => run('webhook', 'check', ...argv, '--data-dir', dir),
  }
}

test.each(Object.entries(SENDER_SCHEMES))('sends a request as %s that its scheme accepts', async (name, scheme) => {
  const { send, received } = await arrange(name)
  const { code, out } = await send('--id', 'd-1')
  expect([code, out]).toEqual([0, expect.stringContaining('in started: run r1')])
  const [request] = received
  const proof = verifyProof(scheme, [SECRET], { ...(request ?? expect.fail()), receivedAtMs: Date.now() })
  expect(proof).toMatchObject({ isValid: true })
})

test('sends the named event and the given body, or a wrong signature', async () => {
  const { send, received, dir } = await arrange('github')
  const file = join(dir, 'body.json')
  writeFileSync(file, '{ "ref": "main" }')
  await send('--event', 'push', '--body', file)
  expect(received[0]).toMatchObject({
    headers: { 'x-github-event': 'push', 'content-type': 'application/json' },
    body: Buffer.from('{ "ref": "main" }'),
  })
  expect((await send('--bad-signature')).code).toBe(1)
  const wrong = received[1] ?? expect.fail()
  expect(verifyProof(SENDER_SCHEMES.github, [SECRET], { ...wrong, receivedAtMs: Date.now() }).isValid).toBe(false)
})

test('chooses among the triggers of a path by the name of the secret', async () => {
  const { send, received, dir } = await arrange('github')
  const trigger = `[[triggers]]\ntype = "webhook"\npath = "/in"\nauth = "gitlab"\nsecret = "other"\n`
  appendFileSync(join(dir, 'sops', 'in', 'SOP.toml'), trigger)
  expect((await send()).err).toContain('github with --secret own, gitlab with --secret other')
  expect((await send('--secret', 'own')).code).toBe(0)
  expect(received.map(({ headers }) => headers['x-hub-signature-256'])).toEqual([expect.stringContaining('sha256=')])
})

test('tells why a captured request would be refused', async () => {
  const { check, dir } = await arrange('github')
  const file = join(dir, 'request')
  const { headers } = signProof(SENDER_SCHEMES.github, SECRET, { url: '', body: '{"a":1}', id: 'd-1', atMs: 0 })
  const lines = ['POST /in HTTP/1.1', ...Object.entries(headers).map(([name, value]) => `${name.toUpperCase()}: ${value}`)]
  writeFileSync(file, `${lines.join('\r\n')}\r\n\r\n{"a":1}`)
  expect(await check('/in', '--request', file)).toMatchObject({ code: 0, out: expect.stringContaining('accepted as delivery d-1') })
  writeFileSync(file, `${lines.join('\n')}\n\n{"a":2}`)
  expect(await check('/in', '--request', file)).toMatchObject({ code: 1, out: expect.stringContaining('does not match the request') })
})

test('checks a captured request against the public address if the sender signs the address', async () => {
  const { check, dir } = await arrange('twilio')
  appendFileSync(join(dir, 'config.toml'), '\n[gateway]\npublic_url = "https://hooks.example.com/"\n')
  const file = join(dir, 'request')
  const { headers } = signProof(SENDER_SCHEMES.twilio, SECRET, { url: 'https://hooks.example.com/in', body: 'a=b', id: 'd', atMs: 0 })
  const lines = ['POST /in HTTP/1.1', 'Host: 127.0.0.1', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  writeFileSync(file, `${lines.join('\n')}\n\na=b`)
  expect(await check('/in', '--request', file)).toMatchObject({ code: 0, out: expect.stringContaining('accepted') })
})

test('tells which secrets are set', async () => {
  const { check } = await arrange('github')
  expect(await check('/in')).toMatchObject({ code: 0, out: expect.stringContaining('1 of 1 set') })
  expect((await check('/other')).code).toBe(1)
})
