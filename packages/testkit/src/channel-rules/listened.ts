/** Runs the connection of a channel under test. */
import type { Channel, Deliver, Inbound } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ListenSubject } from '../channel-subject.ts'
import { testHost } from '../host.ts'
import { startListening } from '../listening.ts'
import { within } from '../within.ts'
import type { Bench } from './bench.ts'

/** Real milliseconds within which a channel must stop; a passing channel needs far less. */
const PROMPT_MS = 2000
/** Real milliseconds within which its messages must arrive. On a busy machine, the keys of encrypted ones take seconds. */
const ARRIVAL_MS = 20_000

export interface ListenedOptions {
  /** Default: takes each message. */
  readonly deliver?: Deliver
  /** The number of messages after which the connection is aborted. */
  readonly enough: number
}

/** Listens until `enough` messages arrive, then aborts. Resolves to the messages, and to how `listen` ended. */
export async function listened({ build, expectNoSecret }: Bench, subject: ListenSubject, { deliver, enough }: ListenedOptions) {
  const host = testHost(subject.host())
  const parts = build(host)
  const channel = parts.channels?.[0] as Channel & Required<Pick<Channel, 'listen'>>
  const delivered: Inbound[] = []
  const came = Promise.withResolvers<void>()
  if (enough === 0) setImmediate(came.resolve)
  let outcome: unknown
  const { listen } = channel
  const watched: Channel = {
    ...channel,
    listen: (...args) =>
      listen.apply(channel, args).then(
        () => {
          outcome = 'resolved'
        },
        (error: unknown) => {
          outcome = error
          came.resolve()
          throw error
        },
      ),
  }
  const listening = startListening(watched, host, async (inbound) => {
    delivered.push(inbound)
    if (delivered.length >= enough) came.resolve()
    await deliver?.(inbound)
  })
  await within(ARRIVAL_MS, came.promise)
  expect(await within(PROMPT_MS, listening.stop()), 'listen after its abort').toBe('ended')
  await parts.close?.()
  expectNoSecret(host, outcome, listening.health)
  return { delivered, ended: outcome }
}
