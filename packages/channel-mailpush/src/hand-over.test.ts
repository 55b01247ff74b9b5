import { AppError } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { createHandOver } from './hand-over.ts'

const MINUTE_MS = 60_000

test.each([new RangeError('Maximum call stack size exceeded'), new AppError('too_large', 'its headers are too large')])(
  'a mail at which %s is left out after an hour, too',
  async (error) => {
    const host = testHost()
    const api = {
      mail: async () => {
        throw error
      },
    }
    const reader = { mailbox: 'bot@example.com', mustBeProved: true, isAllowed: () => true }
    const handOver = createHandOver({ host, api, reader, deliver: async () => undefined })
    const { signal } = new AbortController()
    for (let minutes = 0; minutes < 60; minutes++) {
      await expect(handOver('m1', signal)).rejects.toBe(error)
      await host.advance(MINUTE_MS)
    }
    await handOver('m1', signal)
    expect(host.logs).toMatchObject([{ level: 'error', fields: { mail: 'm1' } }])
  },
)

test('a mail is not given up at its first attempts, however far they are apart', async () => {
  const host = testHost()
  const api = {
    mail: async () => {
      throw new AppError('invalid_request', 'no')
    },
  }
  const reader = { mailbox: 'bot@example.com', mustBeProved: true, isAllowed: () => true }
  const handOver = createHandOver({ host, api, reader, deliver: async () => undefined })
  const { signal } = new AbortController()
  for (let count = 1; count < 10; count++) {
    await expect(handOver('m1', signal)).rejects.toThrow('no')
    await host.advance(60 * MINUTE_MS)
  }
  await handOver('m1', signal)
})
