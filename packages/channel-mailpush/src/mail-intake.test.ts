import { AppError, type Gap, type Host } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { type FetchMail, MailIntake } from './mail-intake.ts'

const MINUTE_MS = 60_000

const policy = { ownAddress: 'bot@example.com', requiresDmarc: true, isAllowed: () => true }
const intakeOf = (host: Host, fetchMail: FetchMail, onGap: (gap: Gap) => void = () => {}) =>
  new MailIntake(host, fetchMail, policy, { deliver: async () => undefined, onGap })

test.each([new RangeError('Maximum call stack size exceeded'), new AppError('too_large', 'its headers are too large')])(
  'skips a mail after an hour of %s, and reports it as missing',
  async (error) => {
    const host = testHost()
    const gaps: Gap[] = []
    const fetchMail = () => Promise.reject(error)
    const intake = intakeOf(host, fetchMail, (gap) => gaps.push(gap))
    const { signal } = new AbortController()
    for (let minutes = 0; minutes < 60; minutes++) {
      await expect(intake.take('m1', signal)).rejects.toBe(error)
      await host.advance(MINUTE_MS)
    }
    await intake.take('m1', signal)
    expect(host.logs).toMatchObject([{ level: 'error', fields: { mail: 'm1' } }])
    expect(gaps).toEqual([{ why: `the mail m1 was refused for an hour: ${error.message}` }])
  },
)

test('tries a mail at least ten times before it skips it', async () => {
  const host = testHost()
  const intake = intakeOf(host, async () => {
    throw new AppError('invalid_request', 'no')
  })
  const { signal } = new AbortController()
  for (let count = 1; count < 10; count++) {
    await expect(intake.take('m1', signal)).rejects.toThrow('no')
    await host.advance(60 * MINUTE_MS)
  }
  await intake.take('m1', signal)
})
