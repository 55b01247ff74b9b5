/** `sluice webhook send`: posts one message to a running daemon, as an operator, a device or the platform of a channel, or one event as a service, and shows the outcome. */
import { gatewaySection, readConfig } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { type Api, textOf } from '../api/api.ts'
import { openRunning } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'

const REPLY_MS_MAX = 600_000
/** The options of a message that is sent as the platform of a channel. */
const PLATFORM_OPTIONS = ['sender', 'to', 'id', 'wait', 'bad-signature'] as const

/** The options of an event that is sent as a service. */
const SENDER_OPTIONS = ['path', 'as', 'event', 'body', 'secret'] as const

export async function run(context: CliContext): Promise<number> {
  if (textOption(context, 'channel') !== undefined) return (await import('../webhooks/send-as-platform.ts')).sendAsPlatform(context)
  if (SENDER_OPTIONS.some((name) => textOption(context, name) !== undefined))
    return (await import('../webhooks/send-as-sender.ts')).sendAsSender(context)
  for (const name of PLATFORM_OPTIONS) {
    if (context.options[name] !== undefined) throw new AppError('invalid_request', `--${name} goes with --channel or --path`)
  }
  if (context.args.length === 0) throw new AppError('invalid_request', "<message> is missing; see 'sluice webhook send --help'")
  const running = await openRunning(context)
  if (!running)
    throw new AppError('unavailable', `no daemon runs on ${context.dataDir}; start one with 'sluice daemon', or name one with --url`)
  try {
    return await post(context, running.api)
  } finally {
    await running.close()
  }
}

async function post(context: CliContext, api: Api): Promise<number> {
  const { args, out, json } = context
  using limit = signalScope([], REPLY_MS_MAX)
  const headers = await messageHeaders(context, api)
  const answer = await api.send('POST', '/webhook', { headers, body: { message: args[0] }, signal: limit.signal })
  const body = membersOf(await textOf(answer, 'POST'))
  const { status } = answer
  const isOk = status >= 200 && status < 300
  if (json) out.json({ status, body })
  else {
    out.print(`${out.style(isOk ? 'green' : 'red', String(status))} ${verdictText(status, body)}`)
    if (typeof body.response === 'string') out.print(body.response)
    else if (typeof body.status_url === 'string') out.print(`follow it at ${body.status_url}`)
  }
  return isOk ? 0 : 1
}

/** The daemon of the data directory needs no secret: the message comes from its operator. */
async function messageHeaders(context: CliContext, { answerer }: Api): Promise<Record<string, string>> {
  const session = textOption(context, 'session')
  const key = textOption(context, 'idempotency-key')
  const secret = answerer === 'url' ? (await readConfig(context)).core(gatewaySection).webhook_secret?.reveal() : undefined
  return {
    ...(session ? { 'x-session-id': session } : {}),
    ...(key ? { 'x-idempotency-key': key } : {}),
    ...(context.options.async === true ? { prefer: 'respond-async' } : {}),
    ...(secret ? { 'x-webhook-secret': secret } : {}),
  }
}

function membersOf(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, unknown>
  } catch {
    return {}
  }
}

function verdictText(status: number, body: Record<string, unknown>): string {
  if (status === 202) return `accepted as turn ${body.turn_id}`
  if (body.status === 'duplicate') return `duplicate: ${body.message}`
  if (status === 200) return `answered by ${body.model} in turn ${body.turn_id}`
  return `refused: ${body.error ?? 'no reason given'}`
}
