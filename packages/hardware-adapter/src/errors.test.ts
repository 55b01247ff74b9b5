import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { bulkEndpoints } from './bulk-endpoints.ts'
import { keptOpen } from './kept-open.ts'
import { openError } from './open-error.ts'

const opened = { what: 'MCP2221 at /dev/hidraw0', access: 'add a rule' }

test.each<[string, unknown, RegExp]>([
  ['a code', Object.assign(new Error('open'), { code: 'EACCES' }), /^No permission for MCP2221 at \/dev\/hidraw0: add a rule$/],
  ['a sentence', new Error('cannot open: Permission denied'), /^No permission/],
  ['a busy device', new Error('could not claim: Resource busy'), /in use by another program/],
  ['anything else', new Error('no such thing'), /cannot be opened: no such thing/],
])('what %s says of opening becomes a sentence with what mends it', (_what, cause, sentence) => {
  expect(openError(cause, opened)).toMatchObject({ code: 'unavailable', message: expect.stringMatching(sentence) })
})

test('an AppError is already what it should be', () => {
  const error = new AppError('not_found', 'none')
  expect(openError(error, opened)).toBe(error)
})

const endpoint = (endpointNumber: number, direction: string, type = 'bulk') => ({ endpointNumber, direction, type })

test('endpoints come from the description, not from a table', () => {
  const interfaces = [
    { interfaceNumber: 0, alternate: { interfaceClass: 3, endpoints: [endpoint(1, 'in'), endpoint(1, 'out')] } },
    {
      interfaceNumber: 1,
      alternate: { interfaceClass: 0xff, endpoints: [endpoint(4, 'in', 'interrupt'), endpoint(5, 'in'), endpoint(6, 'out')] },
    },
  ]
  expect(bulkEndpoints(interfaces)).toEqual({ interfaceNumber: 1, input: 5, output: 6 })
  expect(() => bulkEndpoints(interfaces.slice(0, 1))).toThrow('no pair of bulk endpoints')
})

test('a device that is just given free is opened anew only when it is closed', async () => {
  const clock = testClock()
  const closed = Promise.withResolvers<void>()
  const seen: string[] = []
  const device = keptOpen(clock, async () => {
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

test('what uses a device comes one after the other, also after a failure', async () => {
  const seen: string[] = []
  const device = keptOpen(testClock(), async () => ({ close: async () => void seen.push('close') }))
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

test('a device that is closed while it is being opened does not stay open', async () => {
  const opening = Promise.withResolvers<void>()
  let closes = 0
  const device = keptOpen(testClock(), async () => {
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

test('a device that could not be opened is opened anew the next time, whatever the reason was', async () => {
  let tries = 0
  const device = keptOpen(testClock(), async () => {
    if (++tries === 1) throw new AppError('not_found', 'it is not there')
    return { close: async () => undefined }
  })
  await expect(device.use(async () => undefined)).rejects.toMatchObject({ code: 'not_found' })
  await expect(device.use(async () => 'done')).resolves.toBe('done')
})
