/** Rules for messages that arrive over HTTP. */
import { expect } from 'vitest'
import type { WebhookSubject } from '../channel-subject.ts'
import type { Rules } from '../rules.ts'
import type { Bench } from './bench.ts'
import { createWebhookBench } from './webhook-bench.ts'
import { messageRules } from './webhook-messages.ts'
import { proofRules } from './webhook-proofs.ts'

export function webhookRules(bench: Bench, subject: WebhookSubject): Rules {
  const webhookBench = createWebhookBench(bench, subject)
  return {
    ...messageRules(bench, subject, webhookBench),
    ...proofRules(bench, subject, webhookBench),
    ...(subject.handshake ? handshakeRules(bench, subject.handshake) : {}),
  }
}

function handshakeRules({ webhook }: Bench, { query, tokenKey, challengeKey }: NonNullable<WebhookSubject['handshake']>): Rules {
  const ask = async (changes: Readonly<Record<string, string | undefined>>): Promise<[status: number, text: string]> => {
    const asked = Object.entries({ ...query, ...changes }).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const response = webhook().handshake?.(new URL(`http://localhost/webhook?${new URLSearchParams(asked)}`))
    return [response?.status ?? 0, (await response?.text()) ?? '']
  }
  return {
    'the handshake returns the challenge': async () => {
      expect(await ask({})).toEqual([200, query[challengeKey]])
      expect(await ask({ [challengeKey]: '<b>1</b>' })).toEqual([200, '<b>1</b>'])
    },
    'the handshake accepts the query the channel builds': async () => {
      const asked = webhook().handshakeQuery?.('98765') ?? {}
      const response = webhook().handshake?.(new URL(`http://localhost/webhook?${new URLSearchParams(asked)}`))
      expect(await response?.text()).toBe('98765')
    },
    'a wrong handshake token is 403, a missing challenge 400': async () => {
      for (const token of ['wrong', '', undefined]) expect((await ask({ [tokenKey]: token }))[0]).toBe(403)
      expect((await ask({ [challengeKey]: undefined }))[0]).toBe(400)
    },
  }
}
