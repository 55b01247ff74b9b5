/** The entry `./webhook` verifies and parses pushes in any Node server, without a Sluice runtime. */
import { createServer } from 'node:http'
import { AppError } from '@sluice/sdk'
import { headersIn, listenOnLoopback, readWhole } from '@sluice/testkit/loopback-server'
import { expect, test } from 'vitest'
import { createPushKeys } from './testing/fake-push.ts'
import { createVerification, type PushNotice, type PushOptions, parse } from './webhook.ts'

const SECRET = 'mailpush-secret-01'
const AUDIENCE = 'https://gw.example.com/webhook/mailpush'
const EMAIL = 'push@project.iam.example.com'
const notice = { emailAddress: 'Bot@example.com', historyId: '42' }
const body = JSON.stringify({ message: { data: Buffer.from(JSON.stringify(notice)).toString('base64'), messageId: '7' } })

/** Posts the push with each bearer token. Returns the statuses and the notices that were accepted. */
async function post(options: PushOptions, bearers: readonly string[]) {
  const notices: (PushNotice | undefined)[] = []
  const { verify } = createVerification(options)
  const server = createServer(async (request, response) => {
    const headers = Object.fromEntries(headersIn(request))
    const raw = { headers, url: new URL(request.url ?? '/', AUDIENCE), body: await readWhole(request, 65_536), receivedAtMs: Date.now() }
    try {
      await verify(raw)
      notices.push(parse(raw).notice)
      response.writeHead(200).end()
    } catch (error) {
      response.writeHead(error instanceof AppError ? error.status : 500).end()
    }
  })
  const { url, close } = await listenOnLoopback(server)
  const statuses: number[] = []
  for (const bearer of bearers) {
    statuses.push((await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${bearer}` }, body })).status)
  }
  await close()
  return { statuses, notices }
}

test('accepts pushes with the shared secret', async () => {
  const { statuses, notices } = await post({ secret: SECRET }, [SECRET, 'another'])
  expect(statuses).toEqual([200, 401])
  expect(notices).toEqual([{ mailbox: 'bot@example.com', historyId: 42n }])
})

test('accepts pushes with a token of the push service', async () => {
  const keys = createPushKeys()
  const nowMs = Date.UTC(2026, 0, 1)
  const tokens = { audience: AUDIENCE, email: EMAIL, fetchKeys: async () => keys.jwks(), nowMs: () => nowMs }
  const token = keys.mint({ aud: AUDIENCE, email: EMAIL }, nowMs)
  expect((await post({ secret: '', tokens }, [token, `${token}x`])).statuses).toEqual([200, 401])
})
