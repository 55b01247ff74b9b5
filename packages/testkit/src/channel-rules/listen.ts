/** Rules on messages that come in over a connection the channel holds. */
import { AppError, type Channel, type Inbound } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ListenSubject } from '../channel.ts'
import { testHost } from '../host.ts'
import type { Rules } from '../rules.ts'
import { within } from '../within.ts'
import type { Bench } from './bench.ts'

/** In real time; only a channel that does not end uses it up. */
const PROMPT_MS = 2000

export function listenRules({ build, expectNoSecret }: Bench, { host: hostOf, expect: golden }: ListenSubject): Rules {
  /** Listens until `enough` messages came, then aborts. */
  const listen = async (deliver: (inbound: Inbound) => Promise<void>, enough: number) => {
    const host = testHost(hostOf())
    const parts = build(host)
    const channel = parts.channels?.[0] as Required<Pick<Channel, 'listen'>>
    const abort = new AbortController()
    const delivered: Inbound[] = []
    const came = Promise.withResolvers<void>()
    if (enough === 0) setImmediate(came.resolve)
    const ended = channel
      .listen(async (inbound) => {
        delivered.push(inbound)
        if (delivered.length >= enough) came.resolve()
        await deliver(inbound)
      }, abort.signal)
      .then(
        () => 'resolved',
        (error: unknown) => error,
      )
    await within(PROMPT_MS, Promise.race([came.promise, ended]))
    abort.abort()
    expect(await within(PROMPT_MS, ended), 'after its abort').toBe('ended')
    await parts.close?.()
    expectNoSecret(host, await ended)
    return { delivered, ended: await ended }
  }
  const nothing = async () => undefined

  return {
    'listen delivers its golden messages': async () => {
      expect((await listen(nothing, golden.length)).delivered).toEqual(golden)
    },

    'listen resolves soon after its abort, whether or not a message came': async () => {
      expect((await listen(nothing, golden.length)).ended).toBe('resolved')
      expect((await listen(nothing, 0)).ended).toBe('resolved')
    },

    'a message that could not be kept is no unhandled rejection': async () => {
      const { ended } = await listen(() => Promise.reject(new AppError('unavailable', 'the disk is full')), 1)
      if (ended !== 'resolved') expect(ended).toBeInstanceOf(AppError)
    },
  }
}
