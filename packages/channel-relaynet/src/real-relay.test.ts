/** The channel on a relay that others wrote (`@nostr-relay/core`), with the client of `nostr-tools` as the person. */
import type { AddressInfo } from 'node:net'
import { EventRepository, type Filter, LogLevel, type Event as RelayEvent } from '@nostr-relay/common'
import { NostrRelay } from '@nostr-relay/core'
import { systemClock } from '@sluice/kit'
import { testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { matchFilter } from 'nostr-tools/filter'
import * as nip04 from 'nostr-tools/nip04'
import * as nip17 from 'nostr-tools/nip17'
import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure'
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay'
import * as v from 'valibot'
import { afterEach, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { relaynetSection } from './config.ts'
import feature from './index.ts'

useWebSocketImplementation(WebSocket)

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

class Memory extends EventRepository {
  readonly events: RelayEvent[] = []
  isSearchSupported(): boolean {
    return false
  }
  upsert(event: RelayEvent) {
    const isDuplicate = this.events.some(({ id }) => id === event.id)
    if (!isDuplicate) this.events.push(event)
    return { isDuplicate }
  }
  find(filter: Filter): RelayEvent[] {
    const found = this.events.filter((event) => matchFilter(filter as never, event))
    return found.toSorted((a, b) => b.created_at - a.created_at).slice(0, filter.limit ?? 100)
  }
  async destroy(): Promise<void> {}
}

/** `hostname`: the relay asks for authentication, and shows private messages only to their members. */
async function startRelay(hostname?: string) {
  const memory = new Memory()
  const relay = new NostrRelay(memory, { logLevel: LogLevel.ERROR, filterResultCacheTtl: 0, ...(hostname !== undefined && { hostname }) })
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (socket) => {
    relay.handleConnection(socket)
    socket.on('message', (data) => void relay.handleMessage(socket, JSON.parse(String(data))))
    socket.on('close', () => relay.handleDisconnect(socket))
  })
  await new Promise((resolve) => server.once('listening', resolve))
  closing.push(() => {
    for (const client of server.clients) client.terminate()
    server.close()
    return relay.destroy()
  })
  return { memory, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test.each([undefined, '127.0.0.1'])('talks with a client in both protocols, with authentication at %s', async (hostname) => {
  const { url } = await startRelay(hostname)
  const [botKey, adaKey] = [generateSecretKey(), generateSecretKey()]
  const [bot, ada] = [botKey, adaKey].map(getPublicKey) as [string, string]
  const client = await Relay.connect(url)
  closing.push(() => client.close())
  client.onauth = async (template) => finalizeEvent(template, adaKey)
  const heard: string[] = []
  const listenAsAda = () =>
    client.subscribe([{ kinds: [4, 1059], '#p': [ada] }], {
      onevent(event) {
        if (event.kind === 4) heard.push(`nip04 ${nip04.decrypt(adaKey, event.pubkey, event.content)}`)
        else heard.push(`nip17 ${nip17.unwrapEvent(event, adaKey).content}`)
      },
    })

  const keyValue = memoryKeyValue()
  const config = v.parse(relaynetSection.schema, {
    private_key: Buffer.from(botKey).toString('hex'),
    relays: [url],
    allowed_pubkeys: [ada],
  })
  const start = () => {
    const host = { ...testHost({ keyValue }), clock: systemClock }
    const [channel] = feature.build(host, config).channels ?? []
    if (!channel) throw new Error('The section builds no channel.')
    const received: string[] = []
    const listening = startListening(channel, host, async ({ id, to, text }) => {
      received.push(text)
      await channel.send(to, { text: `you said ${text}`, clientId: id }, new AbortController().signal)
    })
    closing.push(() => listening.stop())
    return { received, listening }
  }
  const first = start()
  await expect.poll(() => first.listening.health.state).toBe('ok')
  if (hostname !== undefined) await client.auth(async (template) => finalizeEvent(template, adaKey))
  listenAsAda()
  await client.publish(nip17.wrapEvent(adaKey, { publicKey: bot }, 'one'))
  const content = nip04.encrypt(adaKey, bot, 'two')
  await client.publish(finalizeEvent({ kind: 4, created_at: Math.floor(Date.now() / 1000), tags: [['p', bot]], content }, adaKey))
  await expect.poll(() => first.received).toEqual(['one', 'two'])
  await expect.poll(() => heard.toSorted()).toEqual(['nip04 you said two', 'nip17 you said one'])
  await first.listening.stop()
  await client.publish(nip17.wrapEvent(adaKey, { publicKey: bot }, 'three'))
  const second = start()
  await expect.poll(() => second.received).toEqual(['three'])
  await expect.poll(() => heard).toContain('nip17 you said three')
})
