import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { quietRepeats } from './quiet-repeats.ts'

test('a warning about an unavailable database is repeated once a minute; others always', async () => {
  const clock = testClock(0)
  const lines: string[] = []
  const to = (level: string) => (message: string) => void lines.push(`${level} ${message}`)
  const log = quietRepeats({ debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') }, clock)
  const error = new AppError('unavailable', 'The store cannot be read now')
  for (const message of ['no beat', 'no beat', 'no shards']) log.warn(message, { error })
  log.warn('no beat', { error: new AppError('internal', 'another reason') })
  log.error('no beat', { error })
  expect(lines.splice(0)).toEqual(['warn no beat', 'debug no beat', 'warn no shards', 'warn no beat', 'error no beat'])
  await clock.advance(60_000)
  log.warn('no beat', { error })
  expect(lines).toEqual(['warn no beat'])
  for (let at = 0; at < 250; at++) log.warn(`message ${at}`, { error })
  expect(lines).toHaveLength(251)
})
