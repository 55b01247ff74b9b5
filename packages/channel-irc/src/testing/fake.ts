/** An IRC server on loopback for one bot: it refuses what servers refuse, and keeps the messages that it accepted. */

import { createServer, type Socket } from 'node:net'
import type { FakeProvider, ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import { FakeClient, type IrcMessage, type IrcState } from './fake-client.ts'

export type { IrcMessage } from './fake-client.ts'

/** The password of the bot's account. */
export const IRC_PASSWORD = 'irc-account-password-01'

export interface IrcFakeOptions {
  readonly nowMs?: () => number
  /** Default: all that the fake knows. */
  readonly capabilities?: readonly string[]
  /** The tokens of RPL_ISUPPORT. */
  readonly supports?: readonly string[]
  /** The password that PASS must give. */
  readonly serverPassword?: string
}

export interface IrcSaid {
  readonly text: string
  readonly from?: string
  /** Null: the person is not logged in. Default: an account of the same name. */
  readonly account?: string | null
  /** A channel, or the nick of the bot. Default: `#ops`. */
  readonly to?: string
  readonly tags?: Readonly<Record<string, string>>
}

export interface IrcFake extends FakeProvider {
  readonly port: number
  /** The messages of the bot. */
  readonly sent: readonly IrcMessage[]
  /** Every line of the bot, oldest first. */
  readonly lines: readonly string[]
  /** Channels that no one can join. */
  readonly closed: Set<string>
  /** How many connections have registered and are open. */
  readonly registered: number
  say(message: IrcSaid): string
  /** Deletes a message of a person. */
  remove(message: { readonly id: string; readonly from: string; readonly to: string }): void
  /** Sends a line to the bot. */
  emit(line: string): void
  /** Keeps the open connections, but neither reads nor writes them any more. */
  mute(): void
  /** Changes the password of the bot's account. */
  changePassword(next: string): void
}

export const CAPABILITIES = [
  'sasl=PLAIN',
  'message-tags',
  'server-time',
  'account-tag',
  'echo-message',
  'batch',
  'draft/chathistory',
  'draft/message-redaction',
]

export async function startIrcFake({
  nowMs = Date.now,
  capabilities = CAPABILITIES,
  supports = ['CHANTYPES=#', 'CHATHISTORY=50'],
  serverPassword,
}: IrcFakeOptions = {}): Promise<IrcFake> {
  const clients = new Set<FakeClient>()
  const faults: { fault: ProviderFault; left: number; matches: (request: ProviderRequest) => boolean }[] = []
  const requests: ProviderRequest[] = []
  const state: IrcState = {
    nowMs,
    capabilities,
    supports,
    serverPassword,
    password: IRC_PASSWORD,
    messages: [],
    lines: [],
    closed: new Set(),
    people: new Set(['ada']),
    nicks: () => [...clients].flatMap(({ nick }) => nick ?? []),
    faultOf(target, text) {
      const request = requestOf(target, text)
      requests.push(request)
      const found = faults.find(({ matches }) => matches(request))
      if (found && --found.left === 0) faults.splice(faults.indexOf(found), 1)
      return found?.fault
    },
  }
  let isDown = false
  const server = createServer((socket: Socket) => {
    if (isDown) return void socket.resetAndDestroy()
    const client = new FakeClient(socket, state)
    clients.add(client)
    socket.once('close', () => clients.delete(client))
  })
  const { url, port, close } = await listenOnLoopback(server)
  return {
    url,
    port,
    requests,
    lines: state.lines,
    closed: state.closed,
    get sent() {
      return state.messages.filter(({ from }) => from === 'sluice')
    },
    get registered() {
      return [...clients].filter(({ isRegistered }) => isRegistered).length
    },
    say({ text, from = 'ada', account = from, to = '#ops', tags = {} }) {
      const message = { id: `m-${state.messages.length + 1}`, atMs: nowMs(), from, account: account ?? undefined, target: to, text, tags }
      state.people.add(from)
      state.messages.push(message)
      for (const client of clients) client.receive(message)
      return message.id
    },
    remove({ id, from, to }) {
      const at = state.messages.findIndex((message) => message.id === id)
      if (at >= 0) state.messages[at] = { ...(state.messages[at] as IrcMessage), isDeleted: true }
      for (const client of clients) client.receiveDeletion({ id, from, target: to })
    },
    emit(line) {
      for (const client of clients) client.send(line)
    },
    mute() {
      for (const client of clients) client.mute()
    },
    changePassword(next) {
      state.password = next
    },
    fail: (fault, { times = 1, matches = () => true } = {}) => void faults.push({ fault, left: times, matches }),
    cut(options = {}) {
      isDown = options.isDown ?? false
      for (const client of clients) client.reset()
    },
    async close() {
      const closed = close()
      for (const client of clients) client.reset()
      await closed
    },
  }
}

const requestOf = (target: string, text: string): ProviderRequest => ({
  method: 'PRIVMSG',
  path: `/${target}`,
  query: new URLSearchParams(),
  headers: new Headers(),
  body: Buffer.from(text),
  json: undefined,
})
