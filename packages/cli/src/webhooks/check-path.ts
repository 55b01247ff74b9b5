/** Checks that requests of a platform reach a channel from outside, and that requests without a valid proof are refused. */
import { randomUUID } from 'node:crypto'
import { AppError, type Channel, type Sample, type Webhook } from '@sluice/sdk'
import { type Answer, exchange, explainAnswer, isAccepted, isRefused, type SentRequest } from './exchange.ts'
import { type Finding, fail, ok } from './finding.ts'
import { corruptRequest, defaultSender, sampleRequest, webhookUrl } from './sample-request.ts'

/** One request and the judgement of its answer. */
interface Probe {
  readonly check: string
  readonly fix: string
  /** The detail of a passed check. */
  readonly passed: string
  /** Returns undefined if there is nothing to send. */
  request(): SentRequest | undefined | Promise<SentRequest | undefined>
  /** Returns the fault of an answer; undefined if the answer is right. */
  findFault(answer: Answer, request: SentRequest): string | undefined | Promise<string | undefined>
}

const SAME_SECRET = 'give the daemon and this command one configuration'
const REACHABLE = 'let the public URL lead to the daemon: its proxy, its port, its path'

/** Sends at most three requests, none of which starts a turn. Stops at the first request without an answer. */
export async function checkPath(channel: Channel, webhook: Webhook, base: string, signal: AbortSignal): Promise<Finding[]> {
  const { name } = channel
  const findings: Finding[] = []
  for (const { check, fix, passed, request, findFault } of probesOf(channel, webhook, base)) {
    try {
      const sent = await request()
      if (!sent) continue
      const answer = await exchange({ ...sent, signal })
      const fault = await findFault(answer, sent)
      const { tookMs } = answer
      findings.push(fault === undefined ? ok(name, { check, detail: passed, tookMs }) : fail(name, { check, detail: fault, tookMs }, fix))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return [...findings, fail(name, { check, detail: error.message }, REACHABLE)]
    }
  }
  return findings
}

function probesOf(channel: Channel, webhook: Webhook, base: string): Probe[] {
  const sample = (): Sample => ({
    sender: defaultSender(channel),
    text: 'sluice webhook check',
    id: `sluice-check-${randomUUID()}`,
    atMs: Date.now(),
    ignored: true,
  })
  const signedRequest = (): SentRequest => ({ method: 'POST', ...sampleRequest(webhook, base, sample()) })
  const refusalFault = async (answer: Answer, request: SentRequest) => {
    if (isRefused(answer)) return undefined
    const isTaken = await isAccepted(answer, webhook, request)
    return isTaken ? 'it is accepted all the same: the daemon there has no secret' : explainAnswer(answer)
  }
  const unverified: Probe = {
    check: 'unverified request',
    fix: SAME_SECRET,
    passed: 'is refused with 401; only the platform can sign one, so its first request will show the rest',
    request: signedRequest,
    findFault: refusalFault,
  }
  const signed: Probe = {
    check: 'signed request',
    fix: SAME_SECRET,
    passed: 'is accepted',
    request: signedRequest,
    findFault: async (answer, request) => ((await isAccepted(answer, webhook, request)) ? undefined : explainAnswer(answer)),
  }
  const corrupt: Probe = {
    check: 'corrupt request',
    fix: SAME_SECRET,
    passed: 'is refused with 401',
    async request() {
      const { atMs, ...rest } = sample()
      const request = await corruptRequest(webhook, sampleRequest(webhook, base, { ...rest, atMs }), atMs)
      return request && { method: 'POST', ...request }
    },
    findFault: refusalFault,
  }
  const isSignable = !webhook.sample(sample()).unverifiable
  return [...handshakeProbes(webhook, base), ...(isSignable ? [signed, corrupt] : [unverified])]
}

function handshakeProbes(webhook: Webhook, base: string): Probe[] {
  if (!webhook.handshake) return []
  const challenge = randomUUID()
  const query = webhook.handshakeQuery?.(challenge)
  const url = new URL(webhookUrl(base, webhook))
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
  const request = (): SentRequest => ({ method: 'GET', url })
  if (query) {
    const findFault = (answer: Answer) => {
      if (answer.status === 200 && answer.text === challenge) return undefined
      const isFromSluice = answer.status === 403 && answer.text === 'Forbidden'
      return isFromSluice ? 'it answers 403: the daemon there has another verify token' : explainAnswer(answer)
    }
    return [{ check: 'handshake', fix: SAME_SECRET, passed: 'the challenge comes back', request, findFault }]
  }
  // The form of the platform's request is unknown. The daemon there must answer this request as the channel answers it here.
  const findFault = async (answer: Answer) => {
    const expected = webhook.handshake?.(url)
    return answer.status === expected?.status && answer.text === (await expected.text()) ? undefined : explainAnswer(answer)
  }
  return [{ check: 'handshake', fix: REACHABLE, passed: 'is answered', request, findFault }]
}
