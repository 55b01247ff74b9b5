/**
 * `signal-cli daemon --http --receive-mode=on-connection` on loopback: events and JSON-RPC as in its manual pages signal-cli-jsonrpc(5) and
 * signal-cli(1). It keeps messages while nothing is connected, and refuses what signal-cli refuses.
 */
import type { ServerResponse } from 'node:http'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'

/** The number of the bot. */
export const SIGNAL_ACCOUNT = '+15550001111'

const ADA = { sourceNumber: '+15550003333', sourceUuid: '0d1e7c4a-9f5b-4c63-8a55-1f0f5d2f7a01' }

const quoted = { quoteTimestamp: v.optional(v.number()), quoteAuthor: v.optional(v.string()) }
const target = { recipient: v.optional(v.array(v.string())), groupId: v.optional(v.string()) }
const sendSchema = v.strictObject({
  ...target,
  ...quoted,
  account: v.string(),
  message: v.string(),
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

/** What a person writes; members replace those of `dataMessage`. */
export interface SignalSay {
  readonly text: string
  readonly group?: string
  readonly data?: object
}

export interface SignalFake extends FakeProvider {
  readonly sent: readonly SignalSent[]
  readonly typing: readonly object[]
  /** Attachments by id. */
  readonly files: Map<string, Uint8Array>
  /** Writes a message. Returns its time, which is a part of its id. */
  say(message: SignalSay): number
  /** Reports an envelope as it is. */
  report(envelope: object): void
  /** Sends nothing more over the open connections. */
  mute(): void
  /** Removes the account, as if it had been unregistered. */
  forget(): void
  /** What `send` reports for each recipient; default `SUCCESS`. */
  outcome: string
}

export async function startSignalFake(nowMs: () => number): Promise<SignalFake> {
  const [sent, typing, files]: [SignalSent[], object[], Map<string, Uint8Array>] = [[], [], new Map()]
  const waiting: string[] = []
  const open = new Set<ServerResponse>()
  let account: string | undefined = SIGNAL_ACCOUNT
  let lastMs = 0

  /** Returns the next time: Signal tells messages of one author apart by it. */
  const nextMs = (): number => {
    lastMs = Math.max(lastMs + 1, nowMs())
    return lastMs
  }
  const flush = (): void => {
    if (open.size > 0) for (const event of waiting.splice(0)) for (const outgoing of open) outgoing.write(event)
  }
  const stream = (outgoing: ServerResponse): void => {
    outgoing.write(':\n')
    open.add(outgoing)
    outgoing.once('close', () => open.delete(outgoing))
    flush()
  }
  const report = (envelope: object): void => {
    waiting.push(`event:receive\ndata:${JSON.stringify({ envelope, account })}\n\n`)
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

  function answer({ method, path, query, json }: ProviderRequest): ProviderReply {
    if (path === '/api/v1/rpc' && method === 'POST') return { status: 200, body: rpc(json) }
    if (path !== '/api/v1/events') return { status: 404 }
    if (method !== 'GET') return { status: 405 }
    if (account === undefined || query.get('account') !== account) return { status: 400 }
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, stream }
  }

  const fake: SignalFake = {
    ...(await startFakeProvider(answer)),
    sent,
    typing,
    files,
    outcome: 'SUCCESS',
    say({ text, group, data }) {
      const timestamp = nextMs()
      const groupInfo = group === undefined ? {} : { groupInfo: { groupId: group, type: 'DELIVER' } }
      report({
        source: ADA.sourceNumber,
        ...ADA,
        sourceDevice: 1,
        timestamp,
        dataMessage: { timestamp, message: text, ...groupInfo, ...data },
      })
      return timestamp
    },
    report,
    mute: () => open.clear(),
    forget() {
      account = undefined
    },
  }
  return fake
}
