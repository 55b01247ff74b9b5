/**
 * `signal-cli daemon --http --receive-mode=on-connection` on loopback: events and JSON-RPC as in its manual pages signal-cli-jsonrpc(5) and
 * signal-cli(1), and ids of events as in its `SseEventBuffer.java`. Messages wait at Signal while nothing is connected. It refuses what
 * signal-cli refuses.
 */
import type { ServerResponse } from 'node:http'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'

/** The number of the bot. */
export const SIGNAL_ACCOUNT = '+15550001111'

const ADA = '+15550003333'
/** Events that it repeats to a client that connects again. */
const KEPT_MAX = 1000
/** The ids of one run of signal-cli begin with the time of its start. */
const RUN = '1767225600000-'

/** The id of the account of a person. */
export const uuidOf = (number: string): string => `0d1e7c4a-9f5b-4c63-8a55-${number.replace('+', '').padStart(12, '0')}`

const authorOf = (number: string): object => ({ source: number, sourceNumber: number, sourceUuid: uuidOf(number), sourceDevice: 1 })

const quoted = { quoteTimestamp: v.optional(v.number()), quoteAuthor: v.optional(v.string()) }
const target = { recipient: v.optional(v.array(v.string())), groupId: v.optional(v.string()) }
const sendSchema = v.strictObject({
  ...target,
  ...quoted,
  account: v.string(),
  message: v.string(),
  textStyle: v.optional(v.array(v.pipe(v.string(), v.regex(/^\d+:\d+:(?:BOLD|ITALIC|STRIKETHROUGH|MONOSPACE|SPOILER)$/)))),
  attachments: v.optional(v.array(v.pipe(v.string(), v.regex(/^data:[\w/.+-]+;filename=[^;]*;base64,/)))),
})
const callSchema = v.strictObject({
  jsonrpc: v.literal('2.0'),
  id: v.string(),
  method: v.string(),
  params: v.record(v.string(), v.unknown()),
})

/** A message that signal-cli accepted. */
export type SignalSent = v.InferOutput<typeof sendSchema>

/** A message that a person writes; members replace members of `dataMessage`. */
export interface SignalSay {
  readonly text: string
  /** The number of the person. Default: the one of Ada. */
  readonly from?: string
  readonly group?: string
  readonly data?: object
}

export interface SignalFake extends FakeProvider {
  readonly sent: readonly SignalSent[]
  readonly typing: readonly object[]
  /** The number of open connections for events. */
  readonly listeners: number
  /** Attachments by id. */
  readonly files: Map<string, Uint8Array>
  /** Writes a message. Returns its time, which is a part of its id. */
  say(message: SignalSay): number
  /** Edits the message of a time. Returns the time of the edit. */
  edit(sentAtMs: number, message: Pick<SignalSay, 'text' | 'from'>): number
  /** Reports an envelope as it is. */
  report(envelope: object): void
  /** Nothing that it writes to the open connections arrives any more. */
  mute(): void
  /** Removes the account, as if it had been unregistered. */
  forget(): void
  /** What `send` reports for each recipient; default `SUCCESS`. */
  outcome: string
}

export interface SignalFakeOptions {
  /** Like versions up to 0.14.8: events have no ids, and are not repeated. Default: false. */
  readonly forgets?: boolean
}

export async function startSignalFake(nowMs: () => number, { forgets = false }: SignalFakeOptions = {}): Promise<SignalFake> {
  const [sent, typing, files]: [SignalSent[], object[], Map<string, Uint8Array>] = [[], [], new Map()]
  /** Messages at Signal, and the events of messages that signal-cli has received. */
  const [waiting, kept]: [string[], { readonly number: number; readonly data: string }[]] = [[], []]
  const open = new Set<ServerResponse>()
  const muted = new Set<ServerResponse>()
  let received = 0
  let account: string | undefined = SIGNAL_ACCOUNT
  let lastMs = 0

  /** Returns the next time: Signal tells messages of one author apart by it. */
  const nextMs = (): number => {
    lastMs = Math.max(lastMs + 1, nowMs())
    return lastMs
  }
  const write = (outgoing: ServerResponse, { number, data }: { readonly number: number; readonly data: string }): void => {
    if (!muted.has(outgoing)) outgoing.write(`${forgets ? '' : `id:${RUN}${number}\n`}event:receive\ndata:${data}\n\n`)
  }
  const flush = (): void => {
    for (const data of open.size > 0 ? waiting.splice(0) : []) {
      const event = { number: ++received, data }
      kept.push(event)
      if (kept.length > KEPT_MAX) kept.shift()
      for (const outgoing of open) write(outgoing, event)
    }
  }
  const stream = (outgoing: ServerResponse, lastId: string | null): void => {
    outgoing.write(':\n')
    const last = lastId?.startsWith(RUN) ? Number(lastId.slice(RUN.length)) : 0
    for (const event of lastId === null || forgets ? [] : kept) if (event.number > last) write(outgoing, event)
    open.add(outgoing)
    outgoing.once('close', () => open.delete(outgoing))
    flush()
  }
  const report = (envelope: object): void => {
    waiting.push(JSON.stringify({ envelope, account }))
    flush()
  }

  function rpc(json: unknown): object {
    const { success, output } = v.safeParse(callSchema, json)
    if (!success) return { error: { code: -32_600, message: 'invalid request' } }
    const { method, params, id } = output as v.InferOutput<typeof callSchema>
    const answer = (result: object): object => ({ jsonrpc: '2.0', result, id })
    if (params.account !== account) return { jsonrpc: '2.0', error: { code: -1, message: 'Specified account does not exist' }, id }
    if (method === 'sendTyping') return answer(typing.push(params) > 0 ? {} : {})
    const file = files.get(String(params.id))
    if (method === 'getAttachment' && file) return answer({ data: Buffer.from(file).toString('base64') })
    const message = v.safeParse(sendSchema, params)
    if (method !== 'send' || !message.success) return { jsonrpc: '2.0', error: { code: -32_602, message: `invalid ${method}` }, id }
    if (fake.outcome === 'SUCCESS') sent.push(message.output)
    return answer({ timestamp: nextMs(), results: [{ recipientAddress: { number: message.output.recipient?.[0] }, type: fake.outcome }] })
  }

  function answer({ method, path, query, headers, json }: ProviderRequest): ProviderReply {
    if (path === '/api/v1/rpc' && method === 'POST') return { status: 200, body: rpc(json) }
    if (path !== '/api/v1/events') return { status: 404 }
    if (method !== 'GET') return { status: 405 }
    if (account === undefined || query.get('account') !== account) return { status: 400 }
    const lastId = headers.get('last-event-id')
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, stream: (outgoing) => stream(outgoing, lastId) }
  }

  const fake: SignalFake = {
    ...(await startFakeProvider(answer)),
    sent,
    typing,
    files,
    outcome: 'SUCCESS',
    get listeners() {
      return open.size
    },
    say({ text, from = ADA, group, data }) {
      const timestamp = nextMs()
      const groupInfo = group === undefined ? {} : { groupInfo: { groupId: group, type: 'DELIVER' } }
      report({ ...authorOf(from), timestamp, dataMessage: { timestamp, message: text, ...groupInfo, ...data } })
      return timestamp
    },
    edit(targetSentTimestamp, { text, from = ADA }) {
      const timestamp = nextMs()
      report({ ...authorOf(from), timestamp, editMessage: { targetSentTimestamp, dataMessage: { timestamp, message: text } } })
      return timestamp
    },
    report,
    mute() {
      for (const outgoing of open) muted.add(outgoing)
    },
    forget() {
      account = undefined
    },
  }
  return fake
}
