/** The entry `./webhook` of a channel verifies and parses requests in any Node server, without a Sluice runtime. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, join, resolve } from 'node:path'
import { AppError, type Inbound, type Raw, type Webhook } from '@sluice/sdk'
import { headersIn, listenOnLoopback, readWhole } from '@sluice/testkit/loopback-server'
import { NOW_SECS, type Vector } from '@sluice/testkit/vector'
import { describe, expect, test } from 'vitest'
import { WEBHOOKS } from './channels.ts'
import { sendRequest } from './daemons/send-request.ts'

const PACKAGES = join(import.meta.dirname, '../../packages')
/** The source of each entry of the kit. */
const { exports: KIT } = JSON.parse(readFileSync(join(PACKAGES, 'kit/package.json'), 'utf8')) as { exports: Record<string, string> }
const BODY_BYTES_MAX = 65_536
/** Modules that a pure entry may import: they do no I/O. Of `jose`, an entry must not use what fetches keys. */
const PURE = ['@sluice/sdk/webhook', 'node:crypto', 'valibot', 'jose', 'libphonenumber-js/core', 'libphonenumber-js/metadata.min.json']

/** The entries whose parser is a pure function: a channel that also listens may fetch its messages over its connection. */
const bare = WEBHOOKS.filter(({ webhook }) => webhook.bare)

test.each(WEBHOOKS)('@sluice/$id/webhook imports only pure modules', ({ id }) => {
  expect(importsOf(join(PACKAGES, id, 'src/webhook.ts')).filter((module) => !PURE.includes(module))).toEqual([])
})

describe.each(bare)('@sluice/$id/webhook', ({ id, webhook }) => {
  test('the search for imports finds the ones of the whole channel, which are not pure', () => {
    expect(importsOf(join(PACKAGES, id, 'src/index.ts'))).toContain('@sluice/kit')
  })

  test('exports verify, parse and createWebhook', async () => {
    const { exports } = JSON.parse(readFileSync(join(PACKAGES, id, 'package.json'), 'utf8')) as { exports: Record<string, string> }
    const entry = exports['./webhook'] ?? 'no entry ./webhook'
    expect(await import(join(PACKAGES, id, entry))).toMatchObject({
      verify: expect.any(Function),
      parse: expect.any(Function),
      createWebhook: expect.any(Function),
    })
  })

  const vectors = webhook.vectors.filter(({ section }) => section === undefined)

  test.each(vectors)('$id in a bare node:http server: $what', async ({ requests, answers, turns = [], nowSecs = NOW_SECS }: Vector) => {
    if (!webhook.bare) throw new Error(`Give \`bare\` to the testing object of ${id}.`)
    await using server = await serve(webhook.bare(), nowSecs * 1000)
    // These requests are for the webhook alone, so no fake of the platform runs.
    const all = requests({} as never)
    const statuses: number[] = []
    for (const request of all) statuses.push((await sendRequest(server.url, request)).status)
    expect(statuses).toEqual(answers.map((answer) => (typeof answer === 'number' ? answer : answer[0])))
    expect(server.messages).toMatchObject(
      turns.map(({ sender, text, to, messageId }) => ({
        sender,
        text,
        ...(messageId !== undefined && { id: messageId }),
        ...(to !== undefined && { to: { to } }),
      })),
    )
  })
})

/** A server that a program without Sluice would write: it keeps the ids and nonces it has seen in memory. */
async function serve(webhook: Webhook, receivedAtMs: number) {
  const messages: Inbound[] = []
  const nonces = new Set<string>()

  async function receive(raw: Raw): Promise<void> {
    const { nonce } = await webhook.verify(raw)
    if (nonce !== undefined && nonces.has(nonce)) throw new AppError('unauthorized', 'Repeated nonce')
    for (const message of await webhook.parse(raw)) if (!messages.some(({ id }) => id === message.id)) messages.push(message)
    if (nonce !== undefined) nonces.add(nonce)
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (request.method === 'GET') {
      const answer = webhook.handshake?.(url) ?? new Response(null, { status: 404 })
      return void response.writeHead(answer.status).end(await answer.text())
    }
    const body = await readWhole(request, webhook.bodyBytesMax ?? BODY_BYTES_MAX)
    const raw = { headers: Object.fromEntries(headersIn(request)), url, body, receivedAtMs }
    const status = await receive(raw).then(
      () => 200,
      (error: unknown) => (error instanceof AppError && error.code === 'unauthorized' ? 401 : 400),
    )
    response.writeHead(status).end()
  })
  const { url, close } = await listenOnLoopback(server, 0)
  return { url, messages, [Symbol.asyncDispose]: close }
}

/** The modules that a file and its own files load, also those loaded late, without types. Subpaths of the kit are followed to their sources. */
function importsOf(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return []
  seen.add(file)
  const imports = /^(?:import|export)(?! type) [^;]*? from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm
  return [...readFileSync(file, 'utf8').matchAll(imports)].flatMap(([, from, effect, dynamic]) => {
    const specifier = from ?? effect ?? dynamic ?? ''
    if (specifier.startsWith('.')) return importsOf(resolve(dirname(file), specifier), seen)
    const source = KIT[specifier.replace('@sluice/kit/', './')]
    return specifier.startsWith('@sluice/kit/') && source ? importsOf(join(PACKAGES, 'kit', source), seen) : [specifier]
  })
}
