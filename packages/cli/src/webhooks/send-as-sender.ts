/** `sluice webhook send --as`: sends a signed event to the triggers on a path as a service such as GitHub would, and shows the outcome. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { withoutTrailing } from '@sluice/kit'
import { AppError, errorText, signProof, type WebhookAuth } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'
import { daemonAddress } from '../probe-daemon.ts'
import { readInput } from '../read-input.ts'
import { type Answer, exchange, explainAnswer, isRefused } from './exchange.ts'
import { chooseAuth, readTriggerAuths } from './trigger-auths.ts'

const BODY_BYTES_MAX = 25 * 1_048_576
/** The options of other messages. */
const OTHER_OPTIONS = ['session', 'idempotency-key', 'async', 'channel', 'sender', 'to', 'wait', 'token-file'] as const

export async function sendAsSender(context: CliContext): Promise<number> {
  const { options, out, json } = context
  for (const name of OTHER_OPTIONS) {
    if (options[name] !== undefined) throw new AppError('invalid_request', `--${name} does not go with --path`)
  }
  const path = textOption(context, 'path')
  if (!path?.startsWith('/')) throw new AppError('invalid_request', '--as needs --path with the path of a trigger, such as --path /github')
  if (context.args.length > 0) throw new AppError('invalid_request', 'a sender posts no message; name a file with --body')
  const { auths, secrets } = await readTriggerAuths(context, path)
  const named = textOption(context, 'secret')
  const auth = chooseAuth(auths, { as: textOption(context, 'as'), secret: named }, path)
  const isCorrupt = options['bad-signature'] === true
  const secret = secretOf(auth, secrets, named)
  const id = textOption(context, 'id') ?? randomUUID()
  const atMs = Date.now()
  const body = await readBody(context, auth, { id, atMs })
  const url = new URL(`${withoutTrailing(await daemonAddress(context), '/')}${path}`)
  const { headers, query } = signProof(auth.scheme, isCorrupt ? wrongSecret(secret) : secret, { url: url.href, body, id, atMs })
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const all = { 'content-type': contentType(body), ...headers, ...eventHeader(auth, textOption(context, 'event')) }
  out.warn(`POST ${url.origin}${url.pathname} as ${auth.name}, delivery ${id}`)
  const answer = await exchange({ method: 'POST', url, headers: all, body, signal: context.interrupted() })
  const isExpected = isCorrupt ? isRefused(answer) : answer.status >= 200 && answer.status < 300
  if (json) out.json({ status: answer.status, took_ms: answer.tookMs, as: auth.name, delivery: id, answer: parsed(answer) })
  else out.print(`${out.style(isExpected ? 'green' : 'red', String(answer.status))} ${verdict(answer, isCorrupt)} (${answer.tookMs} ms)`)
  return isExpected ? 0 : 1
}

function secretOf({ secrets: names }: WebhookAuth, secrets: ReadonlyMap<string, string>, named: string | undefined): string {
  const name = named ?? names.find((one) => secrets.has(one)) ?? names[0] ?? ''
  const secret = secrets.get(name)
  if (secret === undefined)
    throw new AppError('invalid_request', `[sop.secrets] has no ${name}; run \`sluice config set sop.secrets.${name}\``)
  return secret
}

/** Another secret of the same form. */
const wrongSecret = (secret: string): string => secret.replace(/[A-Za-z0-9]/g, (char) => (char === 'A' ? 'B' : 'A'))

/** The body of `--body`, or a sample that has the members which the scheme reads. */
async function readBody(context: CliContext, { scheme }: WebhookAuth, sample: { readonly id: string; readonly atMs: number }) {
  const file = textOption(context, 'body')
  if (file !== undefined) return readFileOrInput(context, file)
  const members: [path: string, value: unknown][] = [['sample', true]]
  if (scheme.idMember !== undefined) members.push([scheme.idMember, sample.id])
  if (scheme.kind === 'hmac' && scheme.timestamp && 'member' in scheme.timestamp) members.push([scheme.timestamp.member, sample.atMs])
  const nested = members.map(([path, value]) => path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value))
  return new TextEncoder().encode(JSON.stringify(Object.assign({}, ...(nested as object[]))))
}

async function readFileOrInput({ stdin }: CliContext, file: string): Promise<Uint8Array<ArrayBuffer>> {
  if (file === '-') return new TextEncoder().encode(await readInput(stdin, BODY_BYTES_MAX))
  try {
    return Uint8Array.from(await readFile(file))
  } catch (error) {
    throw new AppError('invalid_request', `${file} cannot be read: ${errorText(error)}`)
  }
}

const contentType = (body: Uint8Array): string =>
  /^\s*[[{"]/.test(Buffer.from(body.subarray(0, 64)).toString()) ? 'application/json' : 'application/x-www-form-urlencoded'

function eventHeader({ name, scheme }: WebhookAuth, event: string | undefined): Readonly<Record<string, string>> {
  if (event === undefined) return {}
  const [header] = scheme.eventHeaders ?? []
  if (header === undefined) throw new AppError('invalid_request', `${name} names its events in the body; write it with --body`)
  return { [header]: event }
}

const parsed = ({ text }: Answer): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

interface Results {
  readonly results?: readonly { readonly sop: string; readonly status: string; readonly run_id?: string; readonly reason?: string }[]
}

function verdict(answer: Answer, isCorrupt: boolean): string {
  if (isCorrupt && isRefused(answer)) return 'the wrong signature is refused'
  if (answer.status < 200 || answer.status >= 300) return explainAnswer(answer)
  if (isCorrupt) return 'the wrong signature is accepted'
  const { results = [] } = (parsed(answer) ?? {}) as Results
  if (results.length === 0) return 'accepted; no procedure starts: the conditions do not hold'
  return results
    .map(({ sop, status, run_id, reason }) => (status === 'started' ? `${sop} started: run ${run_id}` : `${sop} skipped: ${reason}`))
    .join('; ')
}
