import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { untilAborted } from './until-aborted.ts'

test('work is waited for until it ends or the signal aborts, and nothing is left at the signal', async () => {
  const { signal } = new AbortController()
  await expect(untilAborted(Promise.resolve('done'), signal, 'cut')).resolves.toBe('done')
  await expect(untilAborted(Promise.reject(new Error('its own')), signal, 'cut')).rejects.toThrow('its own')
  expect(getEventListeners(signal, 'abort')).toEqual([])
  const abort = new AbortController()
  const waiting = untilAborted(new Promise(() => {}), abort.signal, 'cut')
  abort.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'aborted', message: 'cut' })
  await expect(untilAborted(Promise.resolve('late'), abort.signal, 'cut')).rejects.toMatchObject({ code: 'aborted' })
})
