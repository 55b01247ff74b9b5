/**
 * A relay and a Blossom server on loopback. It verifies what relays verify (NIP-01, NIP-42), keeps events, and answers requests
 * with a bounded number of its newest ones. See https://github.com/nostr-protocol/nips and https://github.com/hzrd149/blossom.
 */
import { hash } from 'node:crypto'
import type { FakeProvider, ProviderFault, ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'
import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { type Event, verifyEvent } from 'nostr-tools/pure'
import { WebSocketServer } from 'ws'
import { FakeRelayClient, type RelayState } from './fake-relay-client.ts'
import { BOT, type Heard, pubkeyOf, read, type Said, write } from './people.ts'

export interface RelaynetFakeOptions {
  readonly nowMs?: () => number
  readonly auth?: RelayState['auth']
  /** The most events of one request; default 500. */
  readonly limit?: number
  /** How often each event is sent; default once. */
  readonly copies?: number
}

export interface RelaynetFake extends FakeProvider {
  /** The address of the relay. */
  readonly relayUrl: string
  /** The events that the relay keeps. */
  readonly events: readonly Event[]
  /** The public keys that have authenticated, in order. */
  readonly entered: readonly string[]
  /** How many connections are open. */
  readonly connections: number
  /** How many subscriptions are open. */
  readonly subscriptions: number
  /** The files of the Blossom server by their hash. */
  readonly files: Map<string, Uint8Array>
  /** Writes a message to the bot. Returns its id. */
  say(message: Said): string
  /** Stores an event and sends it to the subscribers, as if a client had published it. */
  publish(event: Event): void
  /** Stores an event without sending it to the subscribers, as a relay that loses it between two steps. */
  keep(event: Event): void
  /** Sends an event to all subscribers without storing or checking it. */
  show(event: unknown): void
  /** The messages of the bot that a person can read, each once. */
  heardBy(name: string): Heard[]
  /** Keeps the open connections, but neither reads nor writes them any more. */
  mute(): void
  /** No client may authenticate any more, and everything needs authentication. */
  lock(): void
  /** Ends all subscriptions. */
  endSubscriptions(reason: string): void
  /** Refuses the next `times` events. */
  refuseEvents(reason: string, times?: number): void
}

const PARALLEL_MAX = 64
const REPLACEABLE = 10_050

export async function startRelaynetFake({
  nowMs = Date.now,
  auth = 'none',
  limit = 500,
  copies = 1,
}: RelaynetFakeOptions = {}): Promise<RelaynetFake> {
  const server = new WebSocketServer({ noServer: true, autoPong: false })
  const clients = new Set<FakeRelayClient>()
  const events: Event[] = []
  const files = new Map<string, Uint8Array>()
  const requests: ProviderRequest[] = []
  const faults: { fault: ProviderFault; left: number; matches: (request: ProviderRequest) => boolean }[] = []
  const refusals: string[] = []
  const entered: string[] = []
  let isLocked = false

  const store = (event: Event): void => {
    if (events.some(({ id }) => id === event.id)) return
    if (event.kind === REPLACEABLE) {
      const older = events.findIndex(({ kind, pubkey }) => kind === REPLACEABLE && pubkey === event.pubkey)
      if (older >= 0) events.splice(older, 1)
    }
    events.push(event)
    for (const client of clients) client.show(event)
  }

  /** Decryption takes milliseconds, and suites ask again and again. */
  const readBefore = new Map<string, Heard | undefined>()
  const readOnce = (event: Event, name: string): Heard | undefined => {
    const key = `${event.id} ${name}`
    if (!readBefore.has(key)) readBefore.set(key, read(event, name))
    return readBefore.get(key)
  }

  const state: RelayState = {
    events,
    get auth() {
      return isLocked ? 'required' : auth
    },
    limit,
    copies,
    mayEnter: () => !isLocked,
    onEntered: (pubkey) => void entered.push(pubkey),
    accept(event) {
      const request = requestOf(event)
      requests.push(request)
      const found = faults.find(({ matches }) => matches(request))
      if (found && --found.left === 0) faults.splice(faults.indexOf(found), 1)
      const fault = found?.fault.fault
      if (fault === 'hang') return 'hang'
      if (fault === 'reset') return 'cut'
      if (fault === 'status') return 'rate-limited: slow down'
      const refusal = refusals.shift()
      if (refusal !== undefined) return refusal
      store(event)
      return fault === 'lost' || fault === 'cut' || fault === 'garbage' ? 'cut' : undefined
    },
  }

  const http = await startFakeProvider((request) => blossom(request, files, http.url), {
    upgrade(request, socket, head) {
      if (clients.size >= PARALLEL_MAX) return void socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const client = new FakeRelayClient(webSocket, state, relayUrl)
        clients.add(client)
        webSocket.once('close', () => clients.delete(client))
      })
    },
  })
  const relayUrl = http.url.replace('http', 'ws')

  return {
    ...http,
    relayUrl,
    requests,
    events,
    files,
    entered,
    get connections() {
      return clients.size
    },
    get subscriptions() {
      return [...clients].reduce((sum, client) => sum + client.subscriptions, 0)
    },
    fail: (fault, { times = 1, matches = () => true } = {}) => void faults.push({ fault, left: times, matches }),
    say(message) {
      const { event, id } = write({ atMs: nowMs(), ...message })
      store(event)
      return id
    },
    publish: store,
    keep: (event) => void events.push(event),
    show(event) {
      for (const client of clients) client.show(event as Event)
    },
    heardBy(name) {
      const heard = events.flatMap((event) => readOnce(event, name) ?? []).filter(({ from }) => from === pubkeyOf(BOT))
      return [...new Map(heard.map((one) => [one.id, one])).values()].toSorted((a, b) => a.createdAt - b.createdAt)
    },
    mute() {
      for (const client of clients) client.mute()
    },
    lock() {
      isLocked = true
      for (const client of clients) client.cut()
    },
    endSubscriptions(reason) {
      for (const client of clients) client.endSubscriptions(reason)
    },
    refuseEvents: (reason, times = 1) => void refusals.push(...Array<string>(times).fill(reason)),
    async close() {
      for (const client of clients) client.cut()
      server.close()
      await http.close()
    },
  }
}

/** Stores a file as BUD-02 says, with the authorization of BUD-11, and serves it as BUD-01 says. */
function blossom({ method, path, headers, body }: ProviderRequest, files: Map<string, Uint8Array>, url: string): ProviderReply {
  if (method === 'GET') {
    const file = files.get(path.slice(1))
    return file ? { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: file } : { status: 404 }
  }
  if (method !== 'PUT' || path !== '/upload') return { status: 404 }
  const sha256 = hash('sha256', body, 'hex')
  const [scheme, token = ''] = (headers.get('authorization') ?? '').split(' ')
  const event = scheme === 'Nostr' ? (JSON.parse(Buffer.from(token, 'base64').toString()) as Event) : undefined
  const tag = (name: string) => event?.tags.find(([first]) => first === name)?.[1]
  const isRight = event && verifyEvent(event) && event.kind === 24_242 && tag('t') === 'upload' && tag('x') === sha256
  if (!isRight) return { status: 401, headers: { 'x-reason': 'wrong authorization' } }
  files.set(sha256, body)
  return { status: 200, body: { url: `${url}/${sha256}`, sha256, size: body.length, type: 'application/octet-stream', uploaded: 0 } }
}

const requestOf = (event: Event): ProviderRequest => ({
  method: 'EVENT',
  path: '/',
  query: new URLSearchParams(),
  headers: new Headers(),
  body: Buffer.from(JSON.stringify(event)),
  json: event,
})
