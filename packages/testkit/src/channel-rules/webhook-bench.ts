/** The bench of the webhook rules: the first fixture and ways to verify and parse requests. */
import { AppError, type Inbound, type Raw, type Webhook } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ChannelFixture, WebhookSubject } from '../channel-subject.ts'
import { type TestHost, testHost } from '../host.ts'
import type { Bench } from './bench.ts'

/** Matches the verdict of `verify` for an accepted request. */
export const ACCEPTED = { by: expect.stringMatching(/\S/) }

export interface WebhookBench {
  /** The first fixture, and its body as bytes. */
  readonly sample: ChannelFixture
  readonly bytes: Uint8Array
  /** Parses a fixture, with the allowlist if one is given. */
  parse(fixture: ChannelFixture, allow?: readonly string[]): Promise<readonly Inbound[]>
  /** The messages of all fixtures. */
  messages(): Promise<readonly Inbound[]>
  /** Verifies requests that must all be refused, and returns their errors. */
  refusals(requests: (host: TestHost) => Iterable<Raw>): Promise<AppError[]>
}

export function createWebhookBench(bench: Bench, { fixtures }: WebhookSubject): WebhookBench {
  const { webhook, raw, expectNoSecret } = bench
  const [sample] = fixtures
  if (!sample) throw new Error('webhook: give at least one fixture')
  const parse: WebhookBench['parse'] = async (fixture, allow) => {
    const host = testHost()
    const { webhook } = bench.channel(host, allow)
    return (await webhook?.parse(raw(host, fixture))) ?? []
  }
  return {
    sample,
    bytes: new TextEncoder().encode(sample.body),
    parse,
    messages: async () => (await Promise.all(fixtures.map((fixture) => parse(fixture)))).flat(),
    async refusals(requests) {
      const host = testHost()
      const errors: AppError[] = []
      const hook = webhook(host)
      for (const request of requests(host)) {
        const error = await verified(hook, request)
        expect(error).toBeInstanceOf(AppError)
        expect(error).toMatchObject({ code: 'unauthorized' })
        errors.push(error as AppError)
      }
      expect(errors).not.toEqual([])
      expectNoSecret(host, errors)
      return errors
    },
  }
}

/** Runs the step and returns its result or the error it throws. */
export const attempt = async (step: () => unknown): Promise<unknown> => {
  try {
    return await step()
  } catch (error) {
    return error
  }
}

/** Returns the result of `verify`, or the error it throws. */
export const verified = (hook: Webhook, request: Raw): Promise<unknown> => attempt(() => hook.verify(request))
