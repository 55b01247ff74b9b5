/** `sluice webhook send`: posts one message to a running daemon, as a paired device or as the platform of a channel, and shows the outcome. */
import { gatewaySection, readConfig } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import { newToken } from '@sluice/runtime'
import { AppError, sha256Hex } from '@sluice/sdk'
import { secretStore } from '@sluice/store'
import { openSecretBox } from '@sluice/store/secret-box'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'
import { daemonAddress } from '../probe-daemon.ts'
import { withStore } from '../with-store.ts'

const REPLY_MS_MAX = 600_000
const TOKEN_NAME = 'webhook-send-token'
/** The options of a message that is sent as the platform of a channel. */
const PLATFORM_OPTIONS = ['sender', 'to', 'id', 'wait', 'bad-signature'] as const

export async function run(context: CliContext): Promise<number> {
  if (textOption(context, 'channel') !== undefined) return (await import('../webhooks/send-as-platform.ts')).sendAsPlatform(context)
  for (const name of PLATFORM_OPTIONS) {
    if (context.options[name] !== undefined) throw new AppError('invalid_request', `--${name} goes with --channel`)
  }
  if (context.args.length === 0) throw new AppError('invalid_request', "<message> is missing; see 'sluice webhook send --help'")
  const url = await daemonAddress(context)
  const headers = messageHeaders(context)
  const webhookSecret = textOption(context, 'secret') ?? (await readConfig(context)).core(gatewaySection).webhook_secret?.reveal()
  if (webhookSecret) headers['x-webhook-secret'] = webhookSecret
  const send = (bearer: string) => post(context, url, { ...headers, authorization: `Bearer ${bearer}` })
  const token = textOption(context, 'token')
  return token === undefined ? withOwnToken(context, send) : send(token)
}

function messageHeaders(context: CliContext): Record<string, string> {
  const session = textOption(context, 'session')
  const key = textOption(context, 'idempotency-key')
  return {
    'content-type': 'application/json',
    ...(session ? { 'x-session-id': session } : {}),
    ...(key ? { 'x-idempotency-key': key } : {}),
    ...(context.options.async === true ? { prefer: 'respond-async' } : {}),
  }
}

/**
 * Calls `send` with the token of this command, which is created once and stored encrypted: sessions and idempotency keys belong to
 * a device, so the next call must use the same one.
 */
const withOwnToken = (context: CliContext, send: (token: string) => Promise<number>): Promise<number> =>
  withStore(context, async (store, clock) => {
    const secrets = secretStore(openSecretBox(context.dataDir), store.keyValue('secret:cli'), 'secrets.cli')
    const stored = await secrets.get(TOKEN_NAME)
    if (stored && (await store.devices.findByTokenHash(sha256Hex(stored)))) return send(stored)
    const { token } = await newToken(store, { name: 'webhook send', role: 'client' }, clock)
    await secrets.set(TOKEN_NAME, token)
    return send(token)
  })

async function post({ args, out, json }: CliContext, url: string, headers: Record<string, string>): Promise<number> {
  using limit = signalScope([], REPLY_MS_MAX)
  const response = await fetch(`${url}/webhook`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ message: args[0] }),
    signal: limit.signal,
  }).catch((cause: unknown) => {
    throw new AppError('unavailable', `${url} cannot be reached`, { cause })
  })
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>
  if (json) out.json({ status: response.status, body })
  else {
    out.print(`${out.style(response.ok ? 'green' : 'red', String(response.status))} ${verdictText(response.status, body)}`)
    if (typeof body.response === 'string') out.print(body.response)
    else if (typeof body.status_url === 'string') out.print(`follow it at ${url}${body.status_url}`)
  }
  return response.ok ? 0 : 1
}

function verdictText(status: number, body: Record<string, unknown>): string {
  if (status === 202) return `accepted as turn ${body.turn_id}`
  if (body.status === 'duplicate') return `duplicate: ${body.message}`
  if (status === 200) return `answered by ${body.model} in turn ${body.turn_id}`
  return `refused: ${body.error ?? 'no reason given'}`
}
