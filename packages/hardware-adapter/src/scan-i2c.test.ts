import { AppError } from '@sluice/sdk'
import { expect, test } from 'vitest'
import type { I2c } from './adapter.ts'
import { scanI2c } from './scan-i2c.ts'

const bus = (probe: I2c['probe']): { i2c: I2c; asked: number[] } => {
  const asked: number[] = []
  const refuse = async () => Promise.reject(new Error('a scan only probes'))
  const noted: I2c['probe'] = (address) => {
    asked.push(address)
    return probe(address)
  }
  return { i2c: { read: refuse, write: refuse, probe: noted }, asked }
}
const never = new AbortController().signal
const hangs = async () => Promise.reject(new AppError('upstream_timeout', 'no answer'))

test('every address from 0x08 to 0x77 is probed once', async () => {
  const { i2c, asked } = bus(async (address) => (address === 0x60 ? 'held' : address === 0x48))
  expect(await scanI2c(i2c, never)).toEqual([
    { address: 0x48, held: false },
    { address: 0x60, held: true },
  ])
  expect(asked).toEqual(Array.from({ length: 0x70 }, (_none, index) => index + 8))
})

test('a bus that hangs ends the scan after three addresses', async () => {
  const { i2c, asked } = bus(hangs)
  await expect(scanI2c(i2c, never)).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(asked).toHaveLength(3)
})

test('single addresses that time out are passed over', async () => {
  const { i2c } = bus((address) => (address % 16 ? Promise.resolve(address === 0x48) : hangs()))
  expect(await scanI2c(i2c, never)).toHaveLength(1)
})

test('a scan with ten time-outs is not gone on with', async () => {
  const { i2c, asked } = bus((address) => (address % 2 ? hangs() : Promise.resolve(false)))
  await expect(scanI2c(i2c, never)).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(asked).toHaveLength(20)
})

test('an adapter that is lost ends the scan at once', async () => {
  const { i2c, asked } = bus(async () => Promise.reject(new AppError('unavailable', 'gone')))
  await expect(scanI2c(i2c, never)).rejects.toMatchObject({ code: 'unavailable' })
  expect(asked).toHaveLength(1)
})

test('an abort ends the scan before the next address', async () => {
  const abort = new AbortController()
  const { i2c, asked } = bus(async () => {
    abort.abort()
    return false
  })
  await expect(scanI2c(i2c, abort.signal)).rejects.toMatchObject({ code: 'aborted' })
  expect(asked).toHaveLength(1)
})
