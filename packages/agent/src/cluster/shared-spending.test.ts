import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { SharedSpending } from './shared-spending.ts'

const DAY = Date.UTC(2026, 0, 31)
const MINUTE = 60_000

test('reads only what ended lately, adds up what ended before once in a quarter of an hour, and counts each turn once', async () => {
  const clock = testClock(DAY)
  const ends: { readonly atMs: number; readonly costUsd: number }[] = []
  const asked: string[] = []
  const sum = (from: number, to: number) =>
    ends.filter(({ atMs }) => atMs >= from && atMs < to).reduce((all, { costUsd }) => all + costUsd, 0)
  const spending = new SharedSpending(
    {
      async spentUsd(sinceMs) {
        asked.push(`since ${(sinceMs - DAY) / MINUTE}`)
        return sum(sinceMs, Number.POSITIVE_INFINITY)
      },
      async costs({ sinceMs, untilMs }) {
        asked.push(`until ${(untilMs - DAY) / MINUTE}`)
        return [{ atMs: sinceMs, agent: 'main', model: null, costUsd: sum(sinceMs, untilMs), turns: 0, inputTokens: 0, outputTokens: 0 }]
      },
    },
    clock,
  )
  let total = 0
  for (let minute = 0; minute < 50; minute += 5) {
    ends.push({ atMs: clock.nowMs(), costUsd: 2 ** -minute })
    total += 2 ** -minute
    expect(await spending.spentUsd(DAY)).toBeCloseTo(total, 12)
    await clock.advance(5 * MINUTE)
  }
  expect(asked.filter((text) => text.startsWith('until'))).toEqual(['until 15', 'until 30'])
  expect(asked.at(-1)).toBe('since 30')
})
