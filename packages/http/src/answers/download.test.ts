import { expect, test } from 'vitest'
import { Download } from './download.ts'

/** A download of these pieces whose source cannot be closed. */
const unclosable = (...pieces: string[]) =>
  new Download({
    headers: {},
    open: async () => ({
      read: async () => Buffer.from(pieces.shift() ?? ''),
      [Symbol.asyncDispose]: () => Promise.reject(new Error('EIO')),
    }),
  })

test('an answer whose source fails to close is whole, and its download ends', async () => {
  const { response, closed } = await unclosable('a', 'b').open()
  expect(await response.text()).toBe('ab')
  await closed
})

test('a download whose source fails to close ends when its reader goes away', async () => {
  const { close, closed } = await unclosable('a').open()
  close()
  await closed
})
