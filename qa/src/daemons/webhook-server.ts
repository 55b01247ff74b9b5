/** A webhook server without the daemon's queues: verifies, stores and answers a request, and calls a function for each message. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { AppError, type Feature, isAllowed, type Raw, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'

export interface WebhookServerOptions {
  readonly dataDir: string
  readonly feature: Feature
  /** The configuration of the feature. */
  readonly config: Readonly<Record<string, unknown>>
  /** Called for each message that was stored. */
  readonly work?: (store: Store, number: number) => Promise<void>
}

export interface WebhookServer {
  readonly url: string
  readonly store: Store
  close(): Promise<void>
}

export async function startWebhookServer({
  dataDir,
  feature,
  config,
  work = async () => {},
}: WebhookServerOptions): Promise<WebhookServer> {
  const [channel] = feature.build(testHost(), v.parse(feature.section?.schema ?? v.object({}), config)).channels ?? []
  const webhook = channel?.webhook
  if (!channel || !webhook) throw new Error(`The feature ${feature.id} has no channel with a webhook.`)
  const store = openStore({ file: join(dataDir, 'sluice.db'), clock: systemClock, log: testHost().log })

  const receive = async (raw: Raw): Promise<void> => {
    const { by } = await webhook.verify(raw)
    const messages = (await webhook.parse(raw)).filter(({ sender }) => isAllowed(channel.allow, sender))
    const kept = await store.inbox.keep({
      channel: channel.name,
      verdict: by,
      raw: null,
      receivedAtMs: raw.receivedAtMs,
      messages: messages.map((message) => ({ session: `channel:${channel.name}/${message.to.to}`, message })),
    })
    for (const number of kept === 'replayed' ? [] : kept) if (number !== null) void work(store, number)
  }
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const answer = (status: number, body: string) => response.writeHead(status).end(body)
    const refuse = ({ status, message, code }: AppError) => answer(status, JSON.stringify({ error: message, code }))
    if (url.pathname !== webhook.path) return refuse(new AppError('not_found', 'No route has this path'))
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.method === 'GET') {
      const handshake = webhook.handshake?.(url) ?? new Response(null, { status: 405 })
      return answer(handshake.status, await handshake.text())
    }
    const headers = request.headers as Raw['headers']
    try {
      const raw = { headers, url, body: Buffer.concat(chunks), receivedAtMs: Date.now() }
      await receive(raw)
      const own = await webhook.answer?.(raw)
      return own ? answer(own.status, await own.text()) : answer(200, '{"status":"ok"}')
    } catch (error) {
      return refuse(error instanceof AppError ? error : new AppError('internal', 'Internal error', { cause: error }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    store,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await store.close()
    },
  }
}
