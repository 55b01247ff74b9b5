/** `sluice webhook send --channel`: one message as the channel's provider would send it, followed to the end of its replies. */
import { randomUUID } from 'node:crypto'
import { shownInboxEntry } from '@sluice/delivery'
import type { OpenRuntime } from '@sluice/runtime'
import { configuredChannels, type ReadyChannel } from '@sluice/runtime/configured-channels'
import { AppError, type Sample, type Webhook } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { daemonAddress } from '../daemon-address.ts'
import { openFromContext } from '../open.ts'
import { defaultSender } from '../webhooks/default-sender.ts'
import { type Answer, exchange } from '../webhooks/exchange.ts'
import { isOver } from '../webhooks/follow-message.ts'
import { type Fate, isWell, messageFate } from '../webhooks/message-fate.ts'
import { sampleRequest, spoiltRequest } from '../webhooks/sample-request.ts'
import { wholeNumber } from '../whole-number.ts'

const TEXT = 'hello from sluice webhook send'
const WAIT_SECS = 30
const WAIT_SECS_MAX = 3600
/** Options of a message that is sent as a paired device. */
const OF_DEVICES = ['token', 'secret', 'session', 'idempotency-key', 'async'] as const

export async function run(context: CliContext): Promise<number> {
  const { out, json, args, options } = context
  for (const name of OF_DEVICES) {
    if (options[name] !== undefined) throw new AppError('invalid_request', `--${name} does not go with --channel`)
  }
  const waitMs = 1000 * (typeof options.wait === 'string' ? wholeNumber('--wait', options.wait, 0, WAIT_SECS_MAX) : WAIT_SECS)
  const spoilt = options['bad-signature'] === true
  const base = await daemonAddress(context)
  const signal = context.interrupted()
  const runtime = await openFromContext(context)
  try {
    const { ready, webhook } = channelOf(runtime, String(options.channel))
    const to = text(options.to)
    const sample: Sample = {
      sender: text(options.sender) ?? defaultSender(ready.channel),
      ...(to !== undefined && { to }),
      id: text(options.id) ?? `sluice-${randomUUID()}`,
      text: args[0] ?? TEXT,
      atMs: Date.now(),
    }
    refuseIdle(sample, webhook, ready.channel.name)
    const signed = sampleRequest(webhook, base, sample)
    const request = spoilt ? await spoiltRequest(webhook, signed, sample.atMs) : signed
    if (!request) throw new AppError('conflict', `no signature is wrong while ${webhook.unsigned ?? 'the secret'} is not set`)
    const [newest] = await runtime.store.inbox.list({ limit: 1 })
    out.warn(`POST ${request.url.origin}${request.url.pathname} as ${sample.sender}, message id ${sample.id}`)
    const refusal = spoilt ? 'spoilt' : signed.unverifiable && 'unverifiable'
    const unanswerable = signed.unanswerable === true
    if (!refusal && !ready.channel.listen) out.warn(aboutReply(sample, unanswerable))
    const answer = await exchange({ method: 'POST', ...request, signal })
    const { store } = runtime
    const { sender, id } = sample
    const after = newest?.number ?? 0
    const fate = await messageFate({ store, ready, answer, sender, id, ...(refusal && { refusal }), after, waitMs, signal, tell: out.warn })
    if (json) out.json(shown(answer, ready, sample, fate))
    else print(out, answer, fate)
    return (spoilt ? fate.wanted : isWell(fate, { waitMs, unanswerable })) ? 0 : 1
  } finally {
    await runtime.close(0)
  }
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

function channelOf(runtime: OpenRuntime, name: string): { readonly ready: ReadyChannel; readonly webhook: Webhook } {
  const { ready, broken, unconfigured } = configuredChannels(runtime.snapshot())
  const found = ready.find(({ channel }) => channel.name === name)
  if (found?.channel.webhook) return { ready: found, webhook: found.channel.webhook }
  if (found) throw new AppError('invalid_request', `${name} has no webhook: nobody posts its messages`)
  const absent = [...broken, ...unconfigured].find((channel) => channel.name === name)
  if (absent) throw new AppError('unavailable', `${name} is not ready: ${absent.reason}; see [${absent.section}] in the configuration`)
  const names = ready.flatMap(({ channel }) => (channel.webhook ? [channel.name] : []))
  throw new AppError('not_found', `there is no channel '${name}'; ready are: ${names.join(', ') || 'none'}`)
}

/** `--to` does nothing where answers go to whoever wrote; then it is a mistake. */
function refuseIdle({ to, ...sample }: Sample, webhook: Webhook, channel: string): void {
  if (to !== undefined && webhook.sample({ ...sample, to }).body === webhook.sample(sample).body)
    throw new AppError('invalid_request', `--to does nothing here: the replies of ${channel} go to the sender`)
}

const aboutReply = ({ to, sender }: Sample, unanswerable: boolean): string =>
  unanswerable
    ? 'the reply cannot arrive, because no conversation is named: add --to with one of the provider'
    : `a reply is really sent, to ${to ?? sender}`

const shown = (answer: Answer, { channel }: ReadyChannel, { sender, id }: Sample, { verdict, detail, entry, turn }: Fate) => ({
  status: answer.status,
  took_ms: answer.tookMs,
  verdict,
  detail,
  channel: channel.name,
  sender,
  message_id: id,
  inbox: entry ? shownInboxEntry(entry, turn) : null,
})

function print(out: Output, { status, tookMs }: Answer, { verdict, wanted, detail, entry, turn }: Fate): void {
  const isGood = wanted || verdict === 'accepted' || verdict === 'duplicate' || verdict === 'taken'
  out.print(`${out.style(isGood ? 'green' : 'red', String(status))} ${detail} (${tookMs} ms)`)
  if (!entry) return
  if (turn?.response) out.print(turn.response)
  for (const { number, state, providerId, error } of entry.replies) {
    const end = state === 'sent' ? ` as ${providerId}` : error ? `: ${error}` : ''
    out.print(`reply ${number} ${state}${end}`)
  }
  if (entry.state === 'dead') out.print(`given up: ${entry.error ?? 'no reason given'}`)
  if (!isOver(entry)) out.print(`not over yet; see 'sluice inbox show ${entry.number}'`)
}
