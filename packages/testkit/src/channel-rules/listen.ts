/** Rules for messages that arrive over a connection the channel keeps open. */
import { AppError, type Channel, type Inbound } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ListenSubject } from '../channel-subject.ts'
import { testHost } from '../host.ts'
import { startListening } from '../listening.ts'
import type { Rules } from '../rules.ts'
import { within } from '../within.ts'
import { expectAddressed } from './addressed.ts'
import type { Bench } from './bench.ts'

/** Real milliseconds within which a channel must deliver and stop; a passing channel needs far less. */
const PROMPT_MS = 2000

export function listenRules({ build, channel, expectNoSecret }: Bench, { host: hostOf, expect: golden }: ListenSubject): Rules {
  /** Listens until `enough` messages arrive, then aborts. */
  const listen = async (deliver: (inbound: Inbound) => Promise<void>, enough: number) => {
    const host = testHost(hostOf())
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
      await deliver(inbound)
    })
    await within(PROMPT_MS, came.promise)
    expect(await within(PROMPT_MS, listening.stop()), 'listen after its abort').toBe('ended')
    await parts.close?.()
    expectNoSecret(host, outcome, listening.health)
    return { delivered, ended: outcome }
  }
  const nothing = async () => undefined

  return {
    'listen delivers the expected messages': async () => {
      expect((await listen(nothing, golden.length)).delivered).toEqual(golden)
      for (const message of golden) expectAddressed(message)
    },

    'a message that is listened for has the time from which its reply window counts': async () => {
      if (!channel().limits.replyWindow) return
      for (const { id, sentAtMs } of (await listen(nothing, golden.length)).delivered) expect(sentAtMs, `sentAtMs of ${id}`).toBeDefined()
    },

    'listen resolves promptly after an abort, with or without messages': async () => {
      expect((await listen(nothing, golden.length)).ended).toBe('resolved')
      expect((await listen(nothing, 0)).ended).toBe('resolved')
    },

    'a failed delivery causes no unhandled rejection': async () => {
      const { ended } = await listen(() => Promise.reject(new AppError('unavailable', 'the disk is full')), 1)
      if (ended !== 'resolved') expect(ended).toBeInstanceOf(AppError)
    },
  }
}
