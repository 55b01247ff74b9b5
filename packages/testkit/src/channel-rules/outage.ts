/** Rules for a channel that listens while its platform fails. */
import { AppError, type Deliver } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ChannelSubject, ListenSubject } from '../channel-subject.ts'
import type { Rules } from '../rules.ts'
import { type Outage, OutageBench } from './outage-bench.ts'

/**
 * The time of a long outage. After half an hour, attempts are 6 to 8 minutes apart. So 40 attempts in the first hour are at most 270 in a
 * day, and the contract allows 300.
 */
const LONG_MS = 3_600_000
const CONNECTS_MAX = 40
/** A refused token is tried again after 11 minutes at the earliest. */
const REFUSED_CONNECTS_MAX = 6
const BREAK_MS = 25_000
const BACK_MS_MAX = 5000
/** A silent connection is replaced within this time, which passes in steps that leave time for answers to pings. */
const SILENT_MS_MAX = 120_000
const SILENT_STEP_MS = 4000
const SILENT_WAIT_MS = 1000
/** Longer than the pause between two writes of the positions, and a part of it. */
const POSITIONS_STORED_MS = 6000
const POSITIONS_STEP_MS = 2000

/** `limitMs` is the real time after which an expected state counts as missing. */
export function outageRules(subject: ChannelSubject, listen: ListenSubject, limitMs?: number): Rules {
  const withBench = async (check: (bench: OutageBench) => Promise<void>): Promise<void> => {
    const bench = await OutageBench.open(subject, listen, limitMs)
    try {
      await check(bench)
    } finally {
      await bench.close()
    }
  }
  const connects = (outage: Outage) => () =>
    withBench(async (bench) => {
      bench.listen()
      await bench.connected()
      expect(await bench.connectsDuring(outage, LONG_MS)).toBeLessThanOrEqual(CONNECTS_MAX)
    })

  return {
    'a break of 25 s ends within 5 s of the return of the platform, and no message is lost or doubled': () =>
      withBench(async (bench) => {
        bench.listen()
        await bench.connected()
        bench.platform.say('before')
        await bench.poke()
        await bench.until(() => bench.texts.length === 1)
        expect(await backAfter(bench, BREAK_MS)).toBeLessThanOrEqual(BACK_MS_MAX)
        bench.platform.say('after')
        await bench.poke()
        await bench.until(() => bench.texts.length >= 3)
        expect(bench.texts.toSorted()).toEqual(['after', 'before', 'meanwhile'])
      }),

    'a platform that cannot be reached for an hour is asked at most 40 times': connects('unreachable'),
    'a platform that breaks each connection at once for an hour is asked at most 40 times': connects({ lastsMs: 0 }),
    'a platform that breaks each connection after 5 s for an hour is asked at most 40 times': connects({ lastsMs: 5000 }),

    'a refused token is shown in health and tried rarely': () =>
      withBench(async (bench) => {
        bench.platform.refuse()
        bench.listen()
        await bench.until(() => bench.health.state === 'down')
        await bench.until(() => false, bench.host.clock.monotonicMs() + LONG_MS)
        expect(bench.health.state).toBe('down')
        expect(bench.connects).toBeLessThanOrEqual(REFUSED_CONNECTS_MAX)
      }),

    'a delivery that failed is delivered again': () =>
      withBench(async (bench) => {
        const { stored, deliver } = failingOnce()
        bench.listen(deliver)
        await bench.connected()
        bench.platform.say('one')
        await bench.poke()
        await bench.until(() => stored.has('one'))
        bench.platform.say('two')
        await bench.poke()
        await bench.until(() => stored.has('two'))
      }),

    'a delivery that failed after an outage is delivered again': () =>
      withBench(async (bench) => {
        const { stored, deliver } = failingOnce()
        bench.listen(deliver)
        await bench.connected()
        bench.platform.say('before')
        await bench.poke()
        await bench.until(() => stored.has('before'))
        await backAfter(bench, BREAK_MS)
        await bench.poke()
        await bench.until(() => stored.has('meanwhile'))
      }),

    ...(listen.canFallSilent && {
      'a connection that falls silent is replaced': () =>
        withBench(async (bench) => {
          bench.listen()
          await bench.connected()
          bench.platform.say('before')
          await bench.poke()
          await bench.until(() => bench.texts.length === 1)
          bench.platform.fallSilent?.()
          bench.platform.say('meanwhile')
          const { clock } = bench.host
          for (const endMs = clock.monotonicMs() + SILENT_MS_MAX; bench.texts.length < 2 && clock.monotonicMs() < endMs; ) {
            await clock.advance(SILENT_STEP_MS)
            await bench.until(() => bench.texts.length === 2, clock.monotonicMs() + SILENT_WAIT_MS, SILENT_WAIT_MS / 2)
          }
          expect(bench.texts).toEqual(['before', 'meanwhile'])
        }),
    }),

    'a message that was not durable when the process was killed is delivered again': () =>
      withBench(async (bench) => {
        const stored = Promise.withResolvers<void>()
        const kill = bench.listen(() => stored.promise)
        await bench.connected()
        bench.platform.say('one')
        await bench.poke()
        await bench.until(() => bench.delivered.length > 0)
        // A position beyond the message would be stored by now.
        await bench.until(() => false, bench.host.clock.monotonicMs() + POSITIONS_STORED_MS, POSITIONS_STEP_MS)
        const killed = kill()
        let isDelivered = false
        bench.listen(async () => {
          isDelivered = true
        })
        await bench.until(() => isDelivered)
        expect(bench.texts).toEqual(['one'])
        stored.resolve()
        await killed
      }),
  }
}

/** A delivery that fails for each message the first time. `stored` has the last lines of the messages that were delivered then. */
function failingOnce(): { readonly stored: ReadonlySet<string>; readonly deliver: Deliver } {
  const failed = new Set<string>()
  const stored = new Set<string>()
  const deliver: Deliver = async ({ id, text }) => {
    if (failed.has(id)) return void stored.add(text.split('\n').at(-1) ?? '')
    failed.add(id)
    throw new AppError('unavailable', 'the disk is full')
  }
  return { stored, deliver }
}

/** Breaks the platform for `breakMs`, with a message meanwhile. Returns the milliseconds from its return to the connection. */
export async function backAfter(bench: OutageBench, breakMs: number): Promise<number> {
  const { platform, host } = bench
  const returnsAtMs = host.clock.monotonicMs() + breakMs
  await bench.breakDown()
  platform.say('meanwhile')
  await bench.until(() => false, returnsAtMs)
  platform.fake.cut()
  return (await bench.connected()) - returnsAtMs
}
