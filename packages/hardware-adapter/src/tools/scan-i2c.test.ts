import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import type { I2c } from '../adapter.ts'
import { scanI2c } from './scan-i2c.ts'

const bus = (probe: I2c['probe']): { i2c: I2c; probed: number[] } => {
  const probed: number[] = []
  const refuse = async () => Promise.reject(new Error('a scan only probes'))
  const noted: I2c['probe'] = (address) => {
    probed.push(address)
    return probe(address)
  }
  return { i2c: { read: refuse, write: refuse, probe: noted }, probed }
}
const never = new AbortController().signal
const hangs = async () => Promise.reject(new AppError('upstream_timeout', 'no answer'))

describe('scanI2c', () => {
  test('probes every address from 0x08 to 0x77 once', async () => {
    const { i2c, probed } = bus(async (address) => (address === 0x60 ? 'held' : address === 0x48))
    expect(await scanI2c(i2c, never)).toEqual([
      { address: 0x48, isHeld: false },
      { address: 0x60, isHeld: true },
    ])
    expect(probed).toEqual(Array.from({ length: 0x70 }, (_none, index) => index + 8))
  })

  test('stops after three time-outs in a row', async () => {
    const { i2c, probed } = bus(hangs)
    await expect(scanI2c(i2c, never)).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(probed).toHaveLength(3)
  })

  test('skips single addresses that time out', async () => {
    const { i2c } = bus((address) => (address % 16 ? Promise.resolve(address === 0x48) : hangs()))
    expect(await scanI2c(i2c, never)).toHaveLength(1)
  })

  test('stops after ten time-outs', async () => {
    const { i2c, probed } = bus((address) => (address % 2 ? hangs() : Promise.resolve(false)))
    await expect(scanI2c(i2c, never)).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(probed).toHaveLength(20)
  })

  test('stops at once when the adapter is lost', async () => {
    const { i2c, probed } = bus(async () => Promise.reject(new AppError('unavailable', 'gone')))
    await expect(scanI2c(i2c, never)).rejects.toMatchObject({ code: 'unavailable' })
    expect(probed).toHaveLength(1)
  })

  test('stops before the next address after an abort', async () => {
    const abort = new AbortController()
    const { i2c, probed } = bus(async () => {
      abort.abort()
      return false
    })
    await expect(scanI2c(i2c, abort.signal)).rejects.toMatchObject({ code: 'aborted' })
    expect(probed).toHaveLength(1)
  })
})
