import { AppError } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { startOnceReachable } from './daemon.ts'

const away = (message: string) => new AppError('unavailable', message, { isPassing: true })

/** Starts with these failures first, and returns what was said. */
async function started(failures: readonly unknown[], stop = new AbortController()) {
  const said: string[] = []
  const left = [...failures]
  const start = async (): Promise<string> => {
    if (left.length === 0) return 'running'
    const failure = left.shift()
    if (failure === 'stop') stop.abort()
    throw failure === 'stop' ? away('The server is away.') : failure
  }
  const result = await startOnceReachable(start, { warn: (line) => void said.push(line) }, stop.signal, 1)
  return { result, said }
}

test('a daemon waits for its database, and says each reason once', async () => {
  const failures = [away('The server is away.'), away('The server is away.'), away('The server is a standby.')]
  const { result, said } = await started(failures)
  expect(result).toBe('running')
  expect(said.map((line) => line.replace(/^.*seconds\. /, ''))).toEqual(['The server is away.', 'The server is a standby.'])
})

test('a start that waiting cannot help fails at once', async () => {
  const failure = new AppError('config_invalid', 'store.url is wrong.')
  await expect(started([failure])).rejects.toBe(failure)
  await expect(started([new AppError('unavailable', 'The file is damaged.')])).rejects.toThrow('damaged')
})

test('a daemon that is stopped while it waits does not start', async () => {
  expect((await started(['stop'])).result).toBeUndefined()
})
