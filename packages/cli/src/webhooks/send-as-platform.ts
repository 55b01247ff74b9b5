/** `sluice webhook send --channel`: sends one message as the channel's platform would, and follows it to the end of its replies. */
import { randomUUID } from 'node:crypto'
import { openRuntime } from '@sluice/daemon/open-runtime'
import { configuredChannels, type ReadyChannel } from '@sluice/runtime/configured-channels'
import { AppError, type Sample, type Webhook } from '@sluice/sdk'
import type { Api } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { textOption, wholeNumber } from '../option-values.ts'
import { daemonAddress } from '../probe-daemon.ts'
import { type Answer, exchange, type SentRequest } from './exchange.ts'
import { inboxOf, isOver } from './follow-message.ts'
import { isSuccess, type MessageOutcome, messageOutcome } from './message-outcome.ts'
import { corruptRequest, defaultSender, sampleRequest } from './sample-request.ts'

const TEXT = 'hello from sluice webhook send'
const WAIT_SECS = 30
const WAIT_SECS_MAX = 3600
/** The options of a message that is not sent as a platform. */
const DEVICE_OPTIONS = ['token-file', 'session', 'idempotency-key', 'async', 'path', 'as', 'event', 'body', 'secret'] as const

export async function sendAsPlatform(context: CliContext): Promise<number> {
  const { out, json, options } = context
  for (const name of DEVICE_OPTIONS) {
    if (options[name] !== undefined) throw new AppError('invalid_request', `--${name} does not go with --channel`)
  }
  const waitMs = 1000 * (typeof options.wait === 'string' ? wholeNumber('--wait', options.wait, 0, WAIT_SECS_MAX) : WAIT_SECS)
  const isCorrupt = options['bad-signature'] === true
  const base = await daemonAddress(context)
  const signal = context.interrupted()
  const runtime = await openRuntime({ ...context, quiet: true, only: 'features' })
  // The message is followed in the data directory, also if `--url` names the address of its daemon.
  const local = { ...context, options: { ...options, url: undefined } }
  const send = async (api: Api): Promise<number> => {
    const inbox = inboxOf(api)
    const { ready, webhook } = findChannel(configuredChannels(runtime.snapshot()), String(options.channel))
    const sample = sampleOf(context, ready, webhook)
    const signed = sampleRequest(webhook, base, sample)
    const copy = isCorrupt ? await corruptRequest(webhook, signed, sample.atMs) : signed
    if (!copy) throw new AppError('conflict', `every signature is accepted while ${webhook.unsigned ?? 'the secret'} is not set`)
    const request: SentRequest = { method: 'POST', ...copy }
    const [newest] = await inbox.list({ limit: 1 })
    out.warn(`POST ${request.url.origin}${request.url.pathname} as ${sample.sender}, message id ${sample.id}`)
    const mustRefuse = isCorrupt ? 'corrupt' : signed.unverifiable && 'unverifiable'
    const unanswerable = signed.unanswerable === true
    if (!mustRefuse && !ready.channel.listen) out.warn(replyNotice(sample, unanswerable))
    const answer = await exchange({ ...request, signal })
    const outcome = await messageOutcome({
      inbox,
      ready,
      webhook,
      request,
      answer,
      sender: sample.sender,
      id: sample.id,
      ...(mustRefuse && { mustRefuse }),
      after: newest?.number ?? 0,
      waitMs,
      signal,
      onProgress: out.warn,
    })
    if (json) out.json(shown(answer, ready, sample, outcome))
    else printOutcome(out, answer, outcome)
    return (isCorrupt ? outcome.isExpected : isSuccess(outcome, waitMs, unanswerable)) ? 0 : 1
  }
  try {
    return await withApi(local, send)
  } finally {
    await runtime.close(0)
  }
}

/** Throws `invalid_request`, `unavailable` or `not_found` if no ready channel with a webhook has the name. */
function findChannel(
  { ready, broken, unconfigured }: ReturnType<typeof configuredChannels>,
  name: string,
): { readonly ready: ReadyChannel; readonly webhook: Webhook } {
  const found = ready.find(({ channel }) => channel.name === name)
  if (found?.channel.webhook) return { ready: found, webhook: found.channel.webhook }
  if (found) throw new AppError('invalid_request', `${name} has no webhook: it fetches its messages itself`)
  const absent = [...broken, ...unconfigured].find((channel) => channel.name === name)
  if (absent) throw new AppError('unavailable', `${name} is not ready: ${absent.reason}; see [${absent.section}] in the configuration`)
  const names = ready.flatMap(({ channel }) => (channel.webhook ? [channel.name] : []))
  throw new AppError('not_found', `there is no channel '${name}'; ready are: ${names.join(', ') || 'none'}`)
}

/** Throws `invalid_request` for `--to` if the channel always replies to the sender. */
function sampleOf(context: CliContext, { channel }: ReadyChannel, webhook: Webhook): Sample {
  const sample: Sample = {
    sender: textOption(context, 'sender') ?? defaultSender(channel),
    id: textOption(context, 'id') ?? `sluice-${randomUUID()}`,
    text: context.args[0] ?? TEXT,
    atMs: Date.now(),
  }
  const to = textOption(context, 'to')
  if (to === undefined) return sample
  if (webhook.sample({ ...sample, to }).body === webhook.sample(sample).body)
    throw new AppError('invalid_request', `--to does nothing here: the replies of ${channel.name} go to the sender`)
  return { ...sample, to }
}

const replyNotice = ({ to, sender }: Sample, unanswerable: boolean): string =>
  unanswerable
    ? 'the reply cannot arrive, because no conversation is named: add --to with a conversation of the platform'
    : `a reply is really sent, to ${to ?? sender}`

/** The JSON form of the outcome. */
const shown = (answer: Answer, { channel }: ReadyChannel, { sender, id }: Sample, { verdict, detail, entry }: MessageOutcome) => ({
  status: answer.status,
  took_ms: answer.tookMs,
  verdict,
  detail,
  channel: channel.name,
  sender,
  message_id: id,
  inbox: entry ?? null,
})

function printOutcome(out: Output, { status, tookMs }: Answer, { verdict, isExpected, detail, entry }: MessageOutcome): void {
  const isGood = isExpected || verdict === 'accepted' || verdict === 'duplicate' || verdict === 'taken'
  out.print(`${out.style(isGood ? 'green' : 'red', String(status))} ${detail} (${tookMs} ms)`)
  if (!entry) return
  if (entry.turn?.response) out.print(entry.turn.response)
  for (const { number, state, provider_id, error } of entry.replies) {
    const end = state === 'sent' ? ` as ${provider_id}` : error ? `: ${error}` : ''
    out.print(`reply ${number} ${state}${end}`)
  }
  if (entry.state === 'limited') out.print(`refused: ${entry.error ?? 'a limit was reached'}`)
  if (entry.state === 'dead') out.print(`given up: ${entry.error ?? 'no reason given'}`)
  if (!isOver(entry)) out.hint(`not over yet; see 'sluice inbox show ${entry.number}'`)
}
