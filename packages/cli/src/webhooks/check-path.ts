/** Whether requests reach a channel from outside, and only the right ones: made as its provider makes them. */
import { randomUUID } from 'node:crypto'
import { AppError, type Channel, type Sample, type Webhook } from '@sluice/sdk'
import { defaultSender } from './default-sender.ts'
import { type Answer, exchange, explainAnswer, isRefused, isTaken } from './exchange.ts'
import { type Finding, fail, ok } from './finding.ts'
import { sampleRequest, spoiltRequest, webhookUrl } from './sample-request.ts'

interface Probe {
  readonly check: string
  readonly fix: string
  /** Undefined: there is nothing to ask. */
  ask(): Promise<Answer | undefined>
  /** Why the answer is not the right one; undefined if it is. */
  judge(answer: Answer): string | undefined | Promise<string | undefined>
  /** Said of the right one. */
  readonly good: string
}

const SAME_SECRET = 'give the daemon and this command one configuration'
const REACHABLE = 'let the public URL lead to the daemon: its proxy, its port, its path'

/** At most three requests, none of which starts a turn. Stops at the first that gets no answer. */
export async function checkPath(channel: Channel, webhook: Webhook, base: string, signal: AbortSignal): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const { check, fix, ask, judge, good } of probes(channel, webhook, base, signal)) {
    try {
      const answer = await ask()
      if (!answer) continue
      const wrong = await judge(answer)
      const { tookMs } = answer
      findings.push(
        wrong === undefined ? ok(channel.name, { check, detail: good, tookMs }) : fail(channel.name, { check, detail: wrong, tookMs }, fix),
      )
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return [...findings, fail(channel.name, { check, detail: error.message }, REACHABLE)]
    }
  }
  return findings
}

function probes(channel: Channel, webhook: Webhook, base: string, signal: AbortSignal): Probe[] {
  const sample = (): Sample => ({
    sender: defaultSender(channel),
    text: 'sluice webhook check',
    id: `sluice-check-${randomUUID()}`,
    atMs: Date.now(),
    ignored: true,
  })
  const unproved: Probe = {
    check: 'unproved request',
    fix: SAME_SECRET,
    ask: () => exchange({ method: 'POST', ...sampleRequest(webhook, base, sample()), signal }),
    judge: judgeRefusal,
    good: 'is refused with 401; only the provider can prove one, so the rest shows once it calls',
  }
  const signed: Probe = {
    check: 'signed request',
    fix: SAME_SECRET,
    ask: () => exchange({ method: 'POST', ...sampleRequest(webhook, base, sample()), signal }),
    judge: (answer) => (isTaken(answer) ? undefined : explainAnswer(answer)),
    good: 'is taken',
  }
  const spoilt: Probe = {
    check: 'spoilt request',
    fix: SAME_SECRET,
    async ask() {
      const { atMs, ...rest } = sample()
      const request = await spoiltRequest(webhook, sampleRequest(webhook, base, { ...rest, atMs }), atMs)
      return request && exchange({ method: 'POST', ...request, signal })
    },
    judge: judgeRefusal,
    good: 'is refused with 401',
  }
  const proofs = webhook.sample(sample()).unverifiable ? [unproved] : [signed, spoilt]
  return [...handshakeProbes(webhook, base, signal), ...proofs]
}

function judgeRefusal(answer: Answer): string | undefined {
  if (isRefused(answer)) return undefined
  return isTaken(answer) ? 'it is taken all the same: the daemon there has no secret' : explainAnswer(answer)
}

function handshakeProbes(webhook: Webhook, base: string, signal: AbortSignal): Probe[] {
  if (!webhook.handshake) return []
  const challenge = randomUUID()
  const query = webhook.handshakeQuery?.(challenge)
  const url = new URL(webhookUrl(base, webhook))
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
  const ask = () => exchange({ method: 'GET', url, signal })
  if (query) {
    const judge = (answer: Answer) => {
      if (answer.status === 200 && answer.text === challenge) return undefined
      const isOurs = answer.status === 403 && answer.text === 'Forbidden'
      return isOurs ? 'it answers 403: the daemon there has another verify token' : explainAnswer(answer)
    }
    return [{ check: 'handshake', fix: SAME_SECRET, ask, judge, good: 'the challenge comes back' }]
  }
  // Without the provider's question, the daemon there has to answer what the channel answers here.
  const judge = async (answer: Answer) => {
    const here = webhook.handshake?.(url)
    return answer.status === here?.status && answer.text === (await here.text()) ? undefined : explainAnswer(answer)
  }
  return [{ check: 'handshake', fix: REACHABLE, ask, judge, good: 'is answered' }]
}
