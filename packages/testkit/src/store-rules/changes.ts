/** Rules for the notices of other processes' writes. */
import { expect } from 'vitest'
import { arrival, reply } from './delivery-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

/** The time after which a notice must have come. */
const NOTICE_MS = 1_500

export const changeRules: StoreRules = {
  'notifies each listener of what another process wrote': async ({ store, clock, otherProcess }) => {
    const other = await otherProcess()
    const notices: string[] = []
    store.onChange(() => void notices.push('first'))
    store.onChange(() => void notices.push('second'))
    await other.inbox.keep(arrival('m1'))
    await clock.advance(NOTICE_MS)
    expect(notices).toEqual(['first', 'second'])
    await clock.advance(NOTICE_MS)
    expect(notices).toEqual(['first', 'second'])
    await other.outbox.add([reply('a')])
    await clock.advance(NOTICE_MS)
    expect(notices).toHaveLength(4)
  },

  'does not notify of writes of its own process or from before': async ({ store, clock, otherProcess }) => {
    const other = await otherProcess()
    await other.inbox.keep(arrival('m1'))
    let notices = 0
    store.onChange(() => notices++)
    await store.inbox.keep(arrival('m2'))
    await clock.advance(NOTICE_MS)
    expect(notices).toBe(0)
  },

  'a removed listener gets no more notices, and an added one gets them again': async ({ store, clock, otherProcess }) => {
    const other = await otherProcess()
    let notices = 0
    const remove = store.onChange(() => notices++)
    remove()
    remove()
    await other.inbox.keep(arrival('m1'))
    await clock.advance(NOTICE_MS)
    expect(notices).toBe(0)
    store.onChange(() => notices++)
    await clock.advance(NOTICE_MS)
    expect(notices).toBe(0)
    await other.inbox.keep(arrival('m2'))
    await clock.advance(NOTICE_MS)
    expect(notices).toBe(1)
  },

  'looks for changes only while there are listeners and the store is open': async ({ store, clock }) => {
    const idle = clock.sleeping
    const remove = store.onChange(() => undefined)
    remove()
    await clock.advance(0)
    expect(clock.sleeping).toBe(idle)
    store.onChange(() => undefined)
    await store.close()
    await clock.advance(NOTICE_MS)
    expect(clock.sleeping).toBe(idle)
    expect(() => store.onChange(() => undefined)).toThrow(expect.objectContaining({ code: 'unavailable' }))
  },

  'a lease that another process takes over is lost with the notice': async ({ store, clock, otherProcess }) => {
    const { lease } = await own(store)
    const seen: boolean[] = []
    store.onChange(() => void seen.push(lease.lost.aborted))
    await own(await otherProcess())
    await clock.advance(NOTICE_MS)
    expect(seen).toEqual([true])
  },
}
