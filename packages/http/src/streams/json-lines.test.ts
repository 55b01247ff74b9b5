import { expect, test } from 'vitest'
import { jsonLines } from './json-lines.ts'

test('ends the body when the caller goes away, also for a reader in this process', async () => {
  const caller = new AbortController()
  const response = jsonLines<string>(caller.signal, async (send, signal) => {
    send('first')
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  })
  const reader = response.body?.getReader()
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('"first"\n')
  const rest = reader?.read()
  caller.abort(new Error('the caller went away'))
  await expect(rest).rejects.toThrow('the caller went away')
})
