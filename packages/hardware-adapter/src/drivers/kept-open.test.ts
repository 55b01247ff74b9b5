import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { KeptOpen } from './kept-open.ts'

describe('KeptOpen', () => {
  test('opens a device again only after it is closed', async () => {
    const clock = testClock()
    const closed = Promise.withResolvers<void>()
    const seen: string[] = []
    const device = new KeptOpen(clock, async () => {
      seen.push('open')
      return {
        close: async () => {
          await closed.promise
          seen.push('closed')
        },
      }
    })
    await device.use(async () => undefined)
    await clock.advance(10_000)
    const second = device.use(async () => undefined)
    closed.resolve()
    await second
    expect(seen).toEqual(['open', 'closed', 'open'])
  })

  test('runs calls in order, also after a failure', async () => {
    const seen: string[] = []
    const device = new KeptOpen(testClock(), async () => ({ close: async () => void seen.push('close') }))
    const step = (name: string, fails = false) =>
      device.use(async () => {
        seen.push(`${name} begins`)
        await Promise.resolve()
        seen.push(`${name} ends`)
        if (fails) throw new Error(name)
      })
    await Promise.allSettled([step('one'), step('two', true), step('three')])
    expect(seen).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'close', 'three begins', 'three ends'])
  })

  test('closes a device that is closed while it opens', async () => {
    const opening = Promise.withResolvers<void>()
    let closes = 0
    const device = new KeptOpen(testClock(), async () => {
      await opening.promise
      return { close: async () => void closes++ }
    })
    const using = device.use(async () => undefined)
    await Promise.resolve()
    const closing = device.close()
    opening.resolve()
    await Promise.all([using, closing])
    expect(closes).toBe(1)
  })

  test('opens a device again after any failure to open it', async () => {
    let tries = 0
    const device = new KeptOpen(testClock(), async () => {
      if (++tries === 1) throw new AppError('not_found', 'it is not there')
      return { close: async () => undefined }
    })
    await expect(device.use(async () => undefined)).rejects.toMatchObject({ code: 'not_found' })
    await expect(device.use(async () => 'done')).resolves.toBe('done')
  })
})
