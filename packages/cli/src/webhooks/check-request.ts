/** `sluice webhook check <path>`: tells how the triggers on a path verify requests, and why they would refuse a captured one. */
import { readFile } from 'node:fs/promises'
import { withoutTrailing } from '@sluice/kit'
import { AppError, errorText, type Proof, type SignedRequest, verifyProof, type WebhookAuth } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'
import { type Finding, fail, ok, printFindings } from './finding.ts'
import { readTriggerAuths, type TriggerAuths } from './trigger-auths.ts'

/** Exits with 1 if the captured request would be refused or, without one, if a secret is missing. */
export async function checkRequest(context: CliContext, path: string): Promise<number> {
  const { out, json } = context
  const found = await readTriggerAuths(context, path)
  if (found.auths.length === 0 && !found.takesBearer) throw new AppError('not_found', `no procedure has a webhook trigger on ${path}`)
  const file = textOption(context, 'request')
  const request = file === undefined ? undefined : await readRequest(file, path, found.publicUrl)
  const findings = found.auths.map((auth) => (request ? checkProof(auth, found, request) : checkSecret(auth, found)))
  if (found.takesBearer) findings.push(ok('bearer', { check: 'credentials', detail: 'takes the credentials of POST /webhook' }))
  if (json) out.json(findings)
  else printFindings(out, findings)
  const isGood = ({ status }: Finding) => status !== 'fail'
  return (request ? findings.some(isGood) : findings.every(isGood)) ? 0 : 1
}

const known = ({ secrets: names }: WebhookAuth, { secrets }: TriggerAuths): string[] =>
  names.map((name) => secrets.get(name)).filter((secret) => secret !== undefined)

function checkSecret(auth: WebhookAuth, found: TriggerAuths): Finding {
  const set = known(auth, found)
  if (set.length > 0) return ok(auth.name, { check: 'secret', detail: `${set.length} of ${auth.secrets.length} set` })
  return fail(
    auth.name,
    { check: 'secret', detail: `${auth.secrets.join(', ')} not set` },
    `sluice config set sop.secrets.${auth.secrets[0]}`,
  )
}

function checkProof(auth: WebhookAuth, found: TriggerAuths, request: SignedRequest): Finding {
  const proof = verifyProof(auth.scheme, known(auth, found), request, auth.windowSecs)
  if (proof.isValid) return ok(auth.name, { check: 'request', detail: `would be accepted${idText(proof)}` })
  return fail(
    auth.name,
    { check: 'request', detail: `would be refused: ${proof.reason}` },
    'compare the secret with that of the sender, and send the captured bytes unchanged',
  )
}

const idText = ({ deliveryId }: Extract<Proof, { isValid: true }>): string =>
  deliveryId === undefined ? '; the sender names no delivery, so repeats are not recognised' : ` as delivery ${deliveryId}`

/** Reads header lines, an empty line and the bytes of the body. A first line such as `POST /github HTTP/1.1` is skipped. */
async function readRequest(file: string, path: string, publicUrl: string | undefined): Promise<SignedRequest> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new AppError('invalid_request', `${file} cannot be read: ${errorText(error)}`)
  })
  const [separator, length] = bytes.includes('\r\n\r\n') ? (['\r\n\r\n', 4] as const) : (['\n\n', 2] as const)
  const end = bytes.indexOf(separator)
  if (end < 0) throw new AppError('invalid_request', `${file} has no empty line between the headers and the body`)
  const lines = bytes.subarray(0, end).toString().split(/\r?\n/)
  const headers = Object.fromEntries(lines.filter((line) => line.includes(':')).map(headerOf))
  const target = /^[A-Z]+ (\S+) HTTP\//.exec(lines[0] ?? '')?.[1] ?? path
  const called = `${headers['x-forwarded-proto'] ?? 'http'}://${headers.host ?? 'localhost'}`
  const url = `${withoutTrailing(publicUrl ?? called, '/')}${target}`
  return { headers, url, body: bytes.subarray(end + length), receivedAtMs: timeOf(headers) }
}

function headerOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
}

/** The time of the capture, if the capture has a `Date` header; else now. */
const timeOf = ({ date = '' }: Readonly<Record<string, string>>): number => Date.parse(date) || Date.now()
