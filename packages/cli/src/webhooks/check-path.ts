/** Checks that requests of a platform reach a channel from outside, and that requests without a valid proof are refused. */
import { randomUUID } from 'node:crypto'
import { AppError, type Channel, type Sample, type Webhook } from '@sluice/sdk'
import { type Answer, exchange, explainAnswer, isAccepted, isRefused } from './exchange.ts'
import { type Finding, fail, ok } from './finding.ts'
import { corruptRequest, defaultSender, sampleRequest, webhookUrl } from './sample-request.ts'

/** One request and the judgement of its answer. */
interface Probe {
  readonly check: string
  readonly fix: string
  /** The detail of a passed check. */
  readonly passed: string
  /** Sends the request; returns undefined if there is nothing to send. */
  send(): Promise<Answer | undefined>
  /** Returns the fault of an answer; undefined if the answer is right. */
  findFault(answer: Answer): string | undefined | Promise<string | undefined>
}

const SAME_SECRET = 'give the daemon and this command one configuration'
const REACHABLE = 'let the public URL lead to the daemon: its proxy, its port, its path'

/** Sends at most three requests, none of which starts a turn. Stops at the first request without an answer. */
export async function checkPath(channel: Channel, webhook: Webhook, base: string, signal: AbortSignal): Promise<Finding[]> {
  const { name } = channel
  const findings: Finding[] = []
  for (const { check, fix, passed, send, findFault } of probesOf(channel, webhook, base, signal)) {
    try {
      const answer = await send()
      if (!answer) continue
      const fault = await findFault(answer)
      const { tookMs } = answer
      findings.push(fault === undefined ? ok(name, { check, detail: passed, tookMs }) : fail(name, { check, detail: fault, tookMs }, fix))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return [...findings, fail(name, { check, detail: error.message }, REACHABLE)]
    }
  }
  return findings
}

function probesOf(channel: Channel, webhook: Webhook, base: string, signal: AbortSignal): Probe[] {
  const sample = (): Sample => ({
    sender: defaultSender(channel),
    text: 'sluice webhook check',
    id: `sluice-check-${randomUUID()}`,
    atMs: Date.now(),
    ignored: true,
  })
  const sendSample = () => exchange({ method: 'POST', ...sampleRequest(webhook, base, sample()), signal })
  const unverified: Probe = {
    check: 'unverified request',
    fix: SAME_SECRET,
    passed: 'is refused with 401; only the platform can sign one, so its first request will show the rest',
    send: sendSample,
    findFault: refusalFault,
  }
  const signed: Probe = {
    check: 'signed request',
    fix: SAME_SECRET,
    passed: 'is accepted',
    send: sendSample,
    findFault: (answer) => (isAccepted(answer) ? undefined : explainAnswer(answer)),
  }
  const corrupt: Probe = {
    check: 'corrupt request',
    fix: SAME_SECRET,
    passed: 'is refused with 401',
    async send() {
      const { atMs, ...rest } = sample()
      const request = await corruptRequest(webhook, sampleRequest(webhook, base, { ...rest, atMs }), atMs)
      return request && exchange({ method: 'POST', ...request, signal })
    },
    findFault: refusalFault,
  }
  const isSignable = !webhook.sample(sample()).unverifiable
  return [...handshakeProbes(webhook, base, signal), ...(isSignable ? [signed, corrupt] : [unverified])]
}

function refusalFault(answer: Answer): string | undefined {
  if (isRefused(answer)) return undefined
  return isAccepted(answer) ? 'it is accepted all the same: the daemon there has no secret' : explainAnswer(answer)
}

function handshakeProbes(webhook: Webhook, base: string, signal: AbortSignal): Probe[] {
  if (!webhook.handshake) return []
  const challenge = randomUUID()
  const query = webhook.handshakeQuery?.(challenge)
  const url = new URL(webhookUrl(base, webhook))
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
  const send = () => exchange({ method: 'GET', url, signal })
  if (query) {
    const findFault = (answer: Answer) => {
      if (answer.status === 200 && answer.text === challenge) return undefined
      const isFromSluice = answer.status === 403 && answer.text === 'Forbidden'
      return isFromSluice ? 'it answers 403: the daemon there has another verify token' : explainAnswer(answer)
    }
    return [{ check: 'handshake', fix: SAME_SECRET, passed: 'the challenge comes back', send, findFault }]
  }
  // The form of the platform's request is unknown. The daemon there must answer this request as the channel answers it here.
  const findFault = async (answer: Answer) => {
    const expected = webhook.handshake?.(url)
    return answer.status === expected?.status && answer.text === (await expected.text()) ? undefined : explainAnswer(answer)
  }
  return [{ check: 'handshake', fix: REACHABLE, passed: 'is answered', send, findFault }]
}
